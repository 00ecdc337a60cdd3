/* The table of OCI runtimes, and what one needs; see runtime.h. A probe starts nothing. */
#include "backend/oci/runtime.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"

/* Not the caller's PATH: the program runs as root. */
static const char folders[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* It is in the commands' group already, and so is all that it starts. */
static const char *const crun_flags[] = { "--cgroup-manager=disabled", NULL };
static const char *const runc_flags[] = { NULL };
/* docs/decisions/oci.md says why each. */
static const char *const runsc_flags[] = { "--platform=systrap", "--network=none",
					   "--ignore-cgroups",   "--directfs=false",
					   "--overlay2=none",    "--host-uds=none",
					   "--host-fifo=none",   NULL };

/* The first that is installed. */
static const struct {
	enum runtime_wall wall;
	struct runtime runtime;
} runtimes[] = {
	{ RUNTIME_OCI, { "runc", "runc", runc_flags, true, false, false } },
	{ RUNTIME_OCI, { "crun", "crun", crun_flags, false, true, true } },
	{ RUNTIME_GVISOR, { "runsc", "runsc", runsc_flags, false, false, false } },
};

/* CAISSON_OCI_RUNTIME: one of two programs of the same strength, never another path. */
static bool is_wanted(const struct runtime *runtime)
{
	const char *wanted = getenv("CAISSON_OCI_RUNTIME");

	return !wanted || !*wanted || str_is(wanted, runtime->name);
}

const struct runtime *runtime_find(enum runtime_wall wall, char *ret_path)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (runtimes[i].wall == wall &&
		    (wall == RUNTIME_GVISOR || is_wanted(&runtimes[i].runtime)) &&
		    program_find(runtimes[i].runtime.name, folders, ret_path))
			return &runtimes[i].runtime;
	return NULL;
}

/* Root of the machine, to whom every id is there to give: not one of a user namespace. */
static bool is_root(void)
{
	_cleanup_fd_ int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	static const char all[] = "         0          0 4294967295\n";
	char text[64] = "";

	return geteuid() == 0 && fd >= 0 && read(fd, text, sizeof text - 1) > 0 &&
	       str_is(text, all);
}

static void refuse(struct backend_report *report, const char *cause, const char *fix)
{
	*report = (struct backend_report){ 0 };
	snprintf(report->cause, sizeof report->cause, "%s", cause);
	snprintf(report->fix, sizeof report->fix, "%s", fix);
}

static void describe(struct backend_report *report, bool is_gvisor)
{
	if (is_gvisor) /* its stack is its own, and so is what answers there */
		report->enforces |= FEATURE_NET_LOOPBACK;
	snprintf(report->weaker, sizeof report->weaker, "what programs try is not observed%s",
		 is_gvisor ? "; limits count the sandbox's kernel too"
			   : ", and connect is refused");
}

void runtime_probe(enum runtime_wall wall, struct backend_report *ret_report)
{
	bool is_gvisor = wall == RUNTIME_GVISOR;
	char path[PATH_MAX];

	*ret_report = (struct backend_report){ .is_usable = true };
	ret_report->enforces = FEATURE_FS_VIEW | FEATURE_FS_WRITE | FEATURE_FS_HIDE |
			       FEATURE_FS_PROTECT | FEATURE_NET_NONE | FEATURE_PIDS |
			       FEATURE_SYSCALLS | FEATURE_PRIVILEGE | FEATURE_IDENTITY |
			       FEATURE_TIME | FEATURE_OUTPUT | FEATURE_SCRATCH;
	if (!runtime_find(wall, path))
		refuse(ret_report,
		       is_gvisor ? "runsc is not installed in a folder of the system's"
				 : "neither crun nor runc is installed in a folder of the system's",
		       is_gvisor ? "docs/gvisor.md has the line that builds it: `tools/setup runsc`"
				 : "apt-get install crun (or runc)");
	else if (!is_root())
		refuse(ret_report,
		       "only root starts it here: an ordinary user's runtime has neither control "
		       "groups nor mounts whose ids are mapped",
		       "Start caisson as root, or use the process wall, which needs neither");
	else
		describe(ret_report, is_gvisor);
}
