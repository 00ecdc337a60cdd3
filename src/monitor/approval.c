/*
 * The gate before a start that needs a person's yes; see approval.h.
 *
 *   choose the wall ─▶ terms ─▶ is there a yes to them? ─ yes ─▶ used up, by one rename
 *                        ▲             │ no
 *                        └── again ◀── ask, and wait if that was wished
 *
 * The terms are made anew each time round, so that a script which changed while somebody read it
 * is another start than the one he saw.
 */
#include "monitor/approval.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum {
	INPUT_MAX = 64 << 20,
	LOOK_MS = 200,
	HOW_TEXT = 256,
	DIFFERENCES = 128,
};

static const char stage[] = "approval";

struct gate {
	const struct run_setup *setup;
	const struct approval_wish *wish;
	const struct backend *backend;
	int dir_fd;
	uint8_t key[APPROVAL_KEY];
	json_t *terms;
	char digest[SHA_HEX];
	/* Of what was found: the one that fits, or names of what differs in the one nearest. */
	struct approval found;
	char near_id[APPROVAL_ID];
	char differences[DIFFERENCES];
};

json_t *approval_json(const struct approval *approval)
{
	return json_pack("{s:s, s:s, s:s, s:O, s:O}", "id", approval->id, "state",
			 approval_state_name(approval->state), "digest", approval->digest, "asked",
			 approval->asked, "answered", approval->answered);
}

/* What has to be typed to answer. */
static const char *how_to(const struct gate *gate, const char *id, char ret_text[HOW_TEXT])
{
	char word[HOW_TEXT / 2];

	if (!gate->wish->is_elsewhere)
		snprintf(ret_text, HOW_TEXT, "caisson approve %s", id);
	else if (str_shell_word(gate->wish->root, word, sizeof word) == 0)
		snprintf(ret_text, HOW_TEXT, "caisson approve --run-dir %s %s", word, id);
	else
		snprintf(ret_text, HOW_TEXT, "caisson approve --run-dir DIR %s, with this one's",
			 id);
	return ret_text;
}

/* ---- looking for a yes ----------------------------------------------------------------------- */

static bool is_one_of(const struct gate *gate, const struct approval *approval)
{
	return !gate->wish->id || str_is(gate->wish->id, approval->id);
}

/* The same program in the same workspace: what differs is then worth a word. A yes to something
 * else altogether says nothing about this start. */
static bool is_related(const json_t *a, const json_t *b)
{
	const json_t *mine = json_object_get(a, "command"), *other = json_object_get(b, "command");

	if (json_is_array(mine) && json_is_array(other)) {
		mine = json_array_get(mine, 0);
		other = json_array_get(other, 0);
	}
	return json_typeof(mine) == json_typeof(other) &&
	       (!json_is_string(mine) || json_equal(mine, other)) &&
	       json_equal(json_object_get(json_object_get(a, "workspace"), "host"),
			  json_object_get(json_object_get(b, "workspace"), "host"));
}

/* 1: this one decides. A yes to something else is remembered, to name what differs. */
static int look_at(struct approval *approval, void *data)
{
	struct gate *gate = data;
	char differences[DIFFERENCES];

	if (approval->state == APPROVAL_WAITING || !is_one_of(gate, approval))
		return 0;
	if (str_is(approval->digest, gate->digest)) {
		approval_done(&gate->found);
		gate->found = *approval;
		*approval = (struct approval){ 0 };
		return gate->found.state == APPROVAL_GIVEN;
	}
	approval_differences(approval->terms, gate->terms, differences, sizeof differences);
	if (approval->state != APPROVAL_GIVEN || !is_related(approval->terms, gate->terms) ||
	    (gate->near_id[0] && strlen(differences) >= strlen(gate->differences)))
		return 0;
	memcpy(gate->near_id, approval->id, sizeof gate->near_id);
	memcpy(gate->differences, differences, sizeof gate->differences);
	return 0;
}

static int make_terms(struct gate *gate, struct csn_error *err)
{
	json_decref(gate->terms);
	gate->terms = approval_terms(gate->setup, gate->backend, gate->key, err);
	return gate->terms ? approval_digest(gate->terms, gate->digest, err) : -EINVAL;
}

static int say_denied(const struct gate *gate, struct csn_error *err)
{
	const char *time = "", *id = gate->found.id;
	char left[32];

	json_unpack(gate->found.answered, "{s:s}", "time", &time);
	str_format_duration(gate->found.left_ms / 1000 * 1000 + 1000, left, sizeof left);
	return csn_fail(
		err, -EPERM, stage,
		"ApprovalDenied: a person said no to this (%s, %s): nothing was started. It "
		"can be asked for again in %s",
		id, time, left);
}

/* 1: it may start, and nobody else with this yes; 0: there is none; else a sentence. */
static int look(struct gate *gate, struct csn_error *err)
{
	int r = make_terms(gate, err);

	if (r < 0)
		return r;
	gate->near_id[0] = 0;
	approval_done(&gate->found);
	approvals_each(gate->dir_fd, look_at, gate);
	if (!gate->found.terms)
		return 0;
	if (gate->found.state == APPROVAL_DENIED)
		return say_denied(gate, err);
	r = approval_use(gate->dir_fd, &gate->found, err);
	if (r == -ENOENT && !gate->wish->id)
		return 0;
	return r < 0 ? csn_fail(err, -EPERM, stage, "ApprovalRequired: %s", err->text) : 1;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Named, and not there or not this: saying which is more use than asking once more. */
static int check_named(const struct gate *gate, struct csn_error *err)
{
	_cleanup_approval_ struct approval named = { 0 };
	char differences[DIFFERENCES], how[HOW_TEXT];
	int r = approval_read(gate->dir_fd, gate->wish->id, &named, err);

	if (r < 0)
		return csn_fail(err, -EPERM, stage, "ApprovalRequired: %s", err->text);
	if (!str_is(named.digest, gate->digest)) {
		approval_differences(named.terms, gate->terms, differences, sizeof differences);
		return csn_fail(err, -EPERM, stage,
				"ApprovalRequired: approval %s is for something else, this differs "
				"in: %s. Leave --approval out to ask for this",
				named.id, differences);
	}
	if (named.state == APPROVAL_WAITING && gate->wish->wait_ms > 0)
		return 0;
	return csn_fail(err, -EPERM, stage,
			"ApprovalRequired: %s waits for a person or has expired: nothing was "
			"started. Ask a person to run: %s",
			named.id, how_to(gate, named.id, how));
}

static int say_required(const struct gate *gate, const struct approval *asked,
			struct csn_error *err)
{
	char how[HOW_TEXT];

	how_to(gate, asked->id, how);
	if (gate->near_id[0])
		return csn_fail(err, -EPERM, stage,
				"ApprovalRequired: approval %s is for something else, this differs "
				"in: %s. Nothing was started; ask a person to run: %s",
				gate->near_id, gate->differences, how);
	return csn_fail(err, -EPERM, stage,
			"ApprovalRequired: a person has to say yes to this first, and nothing was "
			"started: ask a person to run: %s. Then start the same again within 15m",
			how);
}

static void rest(uint64_t ms)
{
	struct timespec time = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	nanosleep(&time, NULL); /* cut short by a signal: looked at sooner */
}

/* Until the request is answered. */
static int await_answer(struct gate *gate, const struct approval *asked, struct csn_error *err)
{
	uint64_t now_ms = clock_now_ms(), end_ms = now_ms + gate->wish->wait_ms;
	char how[HOW_TEXT];

	gate->wish->waits(asked, how_to(gate, asked->id, how), gate->wish->data);
	for (; now_ms < end_ms; now_ms = clock_now_ms()) {
		_cleanup_approval_ struct approval now = { 0 };
		int r;

		rest(end_ms - now_ms < LOOK_MS ? end_ms - now_ms : LOOK_MS);
		r = approval_read(gate->dir_fd, asked->id, &now, err);
		if (r < 0)
			return csn_fail(err, -EPERM, stage,
					"ApprovalRequired: the request is gone: %s", err->text);
		if (now.state == APPROVAL_WAITING)
			continue;
		r = look(gate, err);
		/* A yes to what it was, and it is something else by now. */
		return r != 0 ? r : say_required(gate, asked, err);
	}
	return csn_fail(err, -EPERM, stage,
			"ApprovalRequired: nobody answered in time, and nothing was started. The "
			"request still waits: %s",
			how);
}

static int ask(struct gate *gate, struct csn_error *err)
{
	_cleanup_approval_ struct approval asked = { 0 };
	int r = gate->wish->id ? check_named(gate, err) : 0;

	if (r == 0)
		r = approval_ask(gate->dir_fd, gate->terms, &asked, err);
	if (r < 0)
		return r;
	return gate->wish->wait_ms ? await_answer(gate, &asked, err)
				   : say_required(gate, &asked, err);
}

/* ---- the gate -------------------------------------------------------------------------------- */

/* What cannot be approved, whoever says yes. */
static int check(const struct gate *gate, struct csn_error *err)
{
	bool stays = !gate->setup->argv && !gate->setup->text;

	if (stays && gate->setup->plan->tier == TIER_STRICT)
		return csn_fail(err, -EPERM, stage,
				"ApprovalRequired: manual-only (tier strict with approval) means a "
				"yes for each command, and a sandbox that stays runs any: use "
				"caisson run");
	if (!gate->setup->run_root)
		return csn_fail(err, -EPERM, stage,
				"ApprovalRequired: an approval is recorded with the run: leave out "
				"--no-record");
	if (gate->wish->id && !approval_is_id(gate->wish->id))
		return csn_fail(err, -EINVAL, stage,
				"--approval takes an id of 8 digits, as caisson approve --list "
				"shows it");
	return 0;
}

/* A file as input may be the program: what is approved is what will be read, whatever becomes of
 * the file. */
static int seal_input(struct run_setup *setup, struct csn_error *err)
{
	_cleanup_fd_ int copy = -1;
	char data[16384];
	struct stat st;
	ssize_t n = 0;

	if (setup->stdin_fd < 0 || fstat(setup->stdin_fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (st.st_size > INPUT_MAX)
		return csn_fail(
			err, -EFBIG, stage,
			"standard input is a file of more than 64 MiB, too long to approve");
	copy = memfd_create("caisson-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	for (off_t size = 0; copy >= 0 && size <= INPUT_MAX; size += n) {
		n = read(setup->stdin_fd, data, sizeof data);
		if (n <= 0 || fd_write_all(copy, data, (size_t)n) < 0)
			break;
	}
	if (copy < 0 || n != 0 || lseek(copy, 0, SEEK_SET) < 0 ||
	    fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return csn_fail(err, -EIO, stage, "cannot copy standard input, to be approved");
	setup->stdin_fd = fd_take(&copy);
	return 0;
}

static int open_gate(struct gate *gate, struct csn_error *err)
{
	int r = approvals_open(gate->wish->root, true, &gate->dir_fd, err);

	return r < 0 ? r : approvals_key(gate->dir_fd, gate->key, err);
}

int approval_gate(struct run_setup *setup, const struct approval_wish *wish,
		  struct approval *ret_approval, struct csn_error *err)
{
	struct gate gate = { .setup = setup, .wish = wish, .dir_fd = -1 };
	struct backend_report report;
	int r;

	if (backend_choose(setup->plan, &gate.backend, &report, NULL) < 0)
		return 0; /* the start says why, and asks nobody */
	r = check(&gate, err);
	if (r == 0)
		r = seal_input(setup, err);
	if (r == 0)
		r = open_gate(&gate, err);
	if (r == 0)
		r = look(&gate, err);
	if (r == 0)
		r = ask(&gate, err);
	if (r > 0) {
		*ret_approval = gate.found;
		gate.found = (struct approval){ 0 };
		setup->approval = ret_approval;
	}
	json_decref(gate.terms);
	approval_done(&gate.found);
	fd_close(gate.dir_fd);
	return r < 0 ? r : 0;
}

/* A no to the same that came after the yes. */
static int look_for_no(struct approval *approval, void *data)
{
	struct gate *gate = data;

	if (approval->state != APPROVAL_DENIED || !str_is(approval->digest, gate->digest))
		return 0;
	gate->found = *approval;
	*approval = (struct approval){ 0 };
	return 1;
}

static int look_at_answers(struct gate *gate, struct csn_error *err)
{
	if (approval_is_over(gate->setup->approval))
		return csn_fail(err, -EPERM, stage,
				"ApprovalRequired: approval %s expired while the wall was made. "
				"Nothing was started",
				gate->setup->approval->id);
	return approvals_each(gate->dir_fd, look_for_no, gate) == 1 ? say_denied(gate, err) : 0;
}

int approval_look_again(const struct run_setup *setup, const struct backend *backend,
			struct csn_error *err)
{
	const struct approval_wish wish = { .root = setup->run_root };
	struct gate gate = { .setup = setup, .wish = &wish, .backend = backend, .dir_fd = -1 };
	char differences[DIFFERENCES];
	int r;

	if (!setup->approval)
		return 0;
	r = open_gate(&gate, err);
	if (r == 0)
		r = make_terms(&gate, err);
	/* A file as input is a sealed copy, and some of it may have been read by now. */
	if (r == 0)
		r = json_object_set(gate.terms, "stdin",
				    json_object_get(setup->approval->terms, "stdin"));
	if (r == 0)
		r = approval_digest(gate.terms, gate.digest, err);
	if (r == 0 && !str_is(gate.digest, setup->approval->digest)) {
		approval_differences(setup->approval->terms, gate.terms, differences,
				     sizeof differences);
		r = csn_fail(err, -EPERM, stage,
			     "ApprovalRequired: what was approved changed while the wall was made, "
			     "in: %s. Nothing was started",
			     differences);
	}
	if (r == 0)
		r = look_at_answers(&gate, err);
	json_decref(gate.terms);
	approval_done(&gate.found);
	fd_close(gate.dir_fd);
	return r;
}
