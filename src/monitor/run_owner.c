/*
 * What a long run and its owner have to do with each other: the record goes from him to the run and
 * back, reports and output go to him as they come, and before each wait he is asked what he wants.
 * He never waits for the worker, and the worker waits for him only through the window.
 */
#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "monitor/run_private.h"
#include "wire/frame.h"

int run_take_owners(struct run *run)
{
	run->record = *run->setup->owner->record;
	record_open_none(run->setup->owner->record);
	return 0;
}

/* What was inside may still write where the owner's files are: it is waited for. */
void run_give_back(struct run *run)
{
	run_destroy(run);
	if (run->record.dir_fd < 0) /* it never came so far */
		return;
	chain_flush(&run->record.chain);
	run->record.chain.redactor = NULL;
	*run->setup->owner->record = run->record;
	record_open_none(&run->record);
}

const char *const *run_owner_tools(struct run *run)
{
	const char **list = arena_array(&run->arena, 2, sizeof *list);

	if (!list || !run->setup->owner->tools)
		return NULL;
	list[0] = run->setup->owner->tools;
	return list;
}

/* He says by `window` when as much more may come. */
static int take_report(struct run *run, const struct term *bin, struct csn_error *err)
{
	const struct run_owner *owner = run->setup->owner;

	run->report_owed += bin->bytes.size;
	if (run->report_owed > RUN_WINDOW + FRAME_PIECE)
		return csn_fail(err, -EBADMSG, "wire", "the agent overran its window");
	owner->report(owner->data, &run->record.chain, bin->bytes.data, bin->bytes.size);
	return 0;
}

/* He keeps what he has room for; what there is more is a fact, told once, and no end. */
static void take_output(struct run *run, bool is_stderr, const struct term *bin)
{
	const struct run_owner *owner = run->setup->owner;
	uint64_t cap = run->plan->limits.output_bytes, before = run->out.total + run->err.total;
	size_t size = bin->bytes.size;
	struct fact fact;

	owner->output(owner->data, is_stderr, bin->bytes.data, size);
	*(is_stderr ? &run->err.total : &run->out.total) += size;
	run_send_window(run, size);
	if (before > cap || before + size <= cap)
		return;
	fact_output_limit(&fact, cap);
	violations_add(&run->violations, &fact);
}

int run_owner_data(struct run *run, const struct term *items, struct csn_error *err)
{
	if (term_is_atom(&items[2], "report"))
		return take_report(run, &items[3], err);
	take_output(run, term_is_atom(&items[2], "stderr"), &items[3]);
	return 0;
}

uint64_t run_ask_owner(struct run *run, uint64_t now_ms)
{
	const struct run_owner *owner = run->setup->owner;
	struct run_wish wish = { .at_ms = CLOCK_NEVER };

	if (!owner || !run->is_executing)
		return CLOCK_NEVER;
	owner->look(owner->data, &run->record.chain, now_ms, &wish);
	if (wish.window > 0) {
		run->report_owed -= wish.window < run->report_owed ? wish.window : run->report_owed;
		run_send_window(run, wish.window);
	}
	if (wish.ending == END_NONE || run->ending != END_NONE)
		return wish.at_ms;
	run->clock = wish.clock;
	run->end_signal = wish.ending == END_CANCELLED ? SIGTERM : 0;
	run_end(run, wish.ending, true);
	return wish.at_ms;
}
