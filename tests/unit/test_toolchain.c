/*
 * Toolchains: what argv[0] needs is found through PATH, links and "#!" lines, and a home
 * directory itself never is. Everything lies in /mnt, a file system of the test's own.
 */
#include "monitor/toolchain.h"

#include "base/str.h"
#include "own_space.h"

static struct plan plan;
static struct arena arena;
static struct toolchain found;
static const char *home = "HOME=/mnt/users/alice";

static void make_parents(const char *path)
{
	char parent[256];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
		CHECK(mkdir(parent, 0755) == 0 || errno == EEXIST);
	}
}

static void make_program(const char *path, const char *text)
{
	make_parents(path);
	put_text(path, text);
	CHECK(chmod(path, 0755) == 0);
}

static void make_link(const char *path, const char *target)
{
	make_parents(path);
	CHECK(symlink(target, path) == 0);
}

static void start(void)
{
	own_mounts();
	CHECK(plan_init(&plan, TIER_AUTO) == 0);
	arena_init(&arena, 1 << 20);
	plan.workspace.host = "/mnt/users/alice/project";
	make_program("/mnt/users/alice/project/x", "");
}

static void find_argv(const char *const *argv, const char *path)
{
	const char *env[] = { path, home, NULL };

	CHECK(toolchain_find(&(struct toolchain_request){ .plan = &plan,
							  .argv = argv,
							  .caller_env = env,
							  .cwd = "/mnt/users/alice/project" },
			     &arena, &found) == 0);
}

static void find(const char *program, const char *path)
{
	const char *argv[] = { program, "/mnt/tools/argument/bin/x", NULL };

	find_argv(argv, path);
}

static void find_text(const char *text, const char *path)
{
	const char *env[] = { path, home, NULL };

	CHECK(toolchain_find(&(struct toolchain_request){ .plan = &plan,
							  .text = text,
							  .caller_env = env,
							  .cwd = "/mnt/users/alice/project" },
			     &arena, &found) == 0);
}

static void expect(const char *const *list, const char *wanted)
{
	char text[4096] = "";

	for (; *list; list++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", *list);
	CHECK_STR(text, wanted);
}

/* npm of a system: beside the script that it is a link to lies another npm. */
static void a_link_to_what_is_seen(void)
{
	start();
	make_program("/mnt/users/alice/project/lib/npm/bin/npm-cli.js", "#!/usr/bin/env node\n");
	make_program("/mnt/users/alice/project/lib/npm/bin/npm", "");
	make_link("/mnt/users/alice/project/bin/npm", "../lib/npm/bin/npm-cli.js");
	find("npm", "PATH=/mnt/users/alice/project/bin");
	expect(found.paths, "/workspace/bin ");
	expect(found.prefixes, "");
}

static void by_path(void)
{
	start();
	make_program("/mnt/tools/go/bin/go", "\177ELF");
	make_program("/mnt/tools/other/bin/go", "\177ELF");
	put_text("/mnt/users/alice/project/go", "not executable");
	find("go", "PATH=relative:/mnt/users/alice/project::/mnt/missing:/mnt/tools/go/bin:/mnt/"
		   "tools/other/bin");
	expect(found.prefixes, "/mnt/tools/go/bin ");
	expect(found.paths, "/mnt/tools/go/bin ");
	find("/mnt/tools/other/bin/../bin/go", "PATH=");
	expect(found.prefixes, "/mnt/tools/other/bin ");
	find("missing", "PATH=/mnt/tools/go/bin");
	expect(found.prefixes, "");
}

static void covered_anyway(void)
{
	start();
	make_program("/mnt/users/alice/project/tools/bin/x", "\177ELF");
	find("sh", "PATH=/usr/bin:/bin");
	expect(found.prefixes, "");
	find("x", "PATH=/mnt/users/alice/project/tools/bin"); /* the workspace is seen as it is */
	expect(found.prefixes, "");
	find("./x", "PATH=/usr/bin");
	expect(found.prefixes, "");
}

static void virtual_environment(void)
{
	start();
	make_program("/mnt/tools/python/bin/python3.12", "\177ELF");
	make_link("/mnt/tools/python/bin/python3", "python3.12");
	make_link("/mnt/users/alice/project/.venv/bin/python", "/mnt/tools/python/bin/python3");
	find("python", "PATH=/mnt/users/alice/project/.venv/bin:/usr/bin");
	expect(found.prefixes, "/mnt/tools/python/bin ");
	expect(found.paths, "/workspace/.venv/bin /mnt/tools/python/bin ");
	find(".venv/bin/python", "PATH=/usr/bin");
	expect(found.prefixes, "/mnt/tools/python/bin ");
}

static void interpreters(void)
{
	start();
	make_program("/mnt/tools/a/bin/tool", "#!/mnt/tools/b/bin/ruby -w\n");
	make_program("/mnt/tools/b/bin/ruby", "\177ELF");
	make_program("/mnt/tools/c/bin/node", "\177ELF");
	make_program("/mnt/users/alice/project/by-env", "#! /usr/bin/env  node\n");
	find("tool", "PATH=/mnt/tools/a/bin");
	expect(found.prefixes, "/mnt/tools/a/bin /mnt/tools/b/bin ");
	expect(found.paths, "/mnt/tools/a/bin /mnt/tools/b/bin ");
	find("/mnt/users/alice/project/by-env", "PATH=/mnt/tools/c/bin");
	expect(found.prefixes, "/mnt/tools/c/bin ");
}

/* An interpreter of an interpreter, a script of its own, a link to itself, no end of a line. */
static void no_end(void)
{
	char line[600];

	start();
	make_program("/mnt/tools/self/bin/self", "#!/mnt/tools/self/bin/self\n");
	make_link("/mnt/tools/loop/bin/loop", "loop");
	memset(line, 'x', sizeof line - 1);
	line[sizeof line - 1] = 0;
	memcpy(line, "#!/", 3);
	make_program("/mnt/tools/long/bin/long", line);
	make_program("/mnt/tools/short/bin/short", "#!");
	find("self", "PATH=/mnt/tools/self/bin");
	expect(found.prefixes, "/mnt/tools/self/bin ");
	find("loop", "PATH=/mnt/tools/loop/bin");
	expect(found.prefixes, "");
	find("long", "PATH=/mnt/tools/long/bin");
	expect(found.prefixes, "/mnt/tools/long/bin ");
	find("short", "PATH=/mnt/tools/short/bin");
	expect(found.prefixes, "/mnt/tools/short/bin ");
}

static void a_pipe_is_not_waited_for(void)
{
	start();
	make_parents("/mnt/tools/pipe/bin/pipe");
	CHECK(mkfifo("/mnt/tools/pipe/bin/pipe", 0755) == 0);
	alarm(10);
	find("/mnt/tools/pipe/bin/pipe", "PATH=");
	find("pipe", "PATH=/mnt/tools/pipe/bin");
	expect(found.prefixes, "");
}

/* Private keys and records of browsers lie in there. */
static void home_is_never_taken(void)
{
	static const char *const homes[] = { "HOME=/mnt/users/alice", "HOME=/mnt/users/alice/" };

	start();
	make_program("/mnt/users/alice/bin/tool", "\177ELF");
	make_program("/mnt/users/bin/tool", "\177ELF");
	make_program("/mnt/users/alice/.pyenv/shims/tool", "\177ELF");
	for (size_t i = 0; i < ARRAY_SIZE(homes); i++) {
		home = homes[i];
		find("tool", "PATH=/mnt/users/alice/bin");
		expect(found.prefixes, "");
		find("tool", "PATH=/mnt/users/bin");
		expect(found.prefixes, "");
		find("tool",
		     "PATH=/mnt/users/alice/.pyenv/shims"); /* beneath it, by a bin folder */
		expect(found.prefixes, "/mnt/users/alice/.pyenv/shims ");
	}
}

/* HOME may be a link: a program in it is followed to where it really lies. */
static void home_by_a_link(void)
{
	start();
	make_program("/mnt/users/alice/bin/tool", "\177ELF");
	make_program("/mnt/users/alice/src/secret", "");
	make_program("/mnt/users/alice/.local/bin/other", "\177ELF");
	make_program("/mnt/users/alice/.local/share/keyrings/login", "secret");
	make_link("/mnt/me", "users/alice");
	home = "HOME=/mnt/me";
	find("tool", "PATH=/mnt/me/bin");
	expect(found.prefixes, "");
	find("tool", "PATH=/mnt/users/alice/bin");
	expect(found.prefixes, "");
	find("other", "PATH=/mnt/users/alice/.local/bin");
	expect(found.prefixes, "/mnt/users/alice/.local/bin ");
}

/* A project's first line may name any program of the caller's: what lies beside its bin stays shut.
 */
static void only_parts(void)
{
	start();
	home = "HOME=/mnt/users/alice";
	make_program("/mnt/users/alice/.local/bin/tool", "\177ELF");
	make_program("/mnt/users/alice/.local/lib/part", "");
	make_program("/mnt/users/alice/.local/share/keyrings/login", "secret");
	make_program("/mnt/users/alice/.cargo/bin/cargo", "\177ELF");
	put_text("/mnt/users/alice/.cargo/credentials.toml", "secret");
	make_program("/mnt/tools/node/bin/node", "\177ELF");
	make_program("/mnt/tools/node/share/part", "");
	make_link("/mnt/tools/node/lib", "/mnt/users");
	find("tool", "PATH=/mnt/users/alice/.local/bin");
	expect(found.prefixes, "/mnt/users/alice/.local/bin /mnt/users/alice/.local/lib ");
	find("cargo", "PATH=/mnt/users/alice/.cargo/bin");
	expect(found.prefixes, "/mnt/users/alice/.cargo/bin ");
	find("node", "PATH=/mnt/tools/node/bin");
	expect(found.prefixes, "/mnt/tools/node/bin /mnt/tools/node/share ");
}

/* A link that an earlier run left in a writable folder names the same places another way. */
static void home_by_any_link(void)
{
	start();
	home = "HOME=/mnt/users/alice";
	make_program("/mnt/users/alice/.local/bin/tool", "\177ELF");
	make_program("/mnt/users/alice/.local/share/keyrings/login", "secret");
	make_program("/mnt/users/alice/bin/own", "\177ELF");
	make_program("/mnt/users/alice/lib/secret", "");
	make_link("/mnt/users/alice/.cache/rw/local", "../../.local");
	make_link("/mnt/users/alice/.cache/rw/all", "../..");
	find("/mnt/users/alice/.cache/rw/local/bin/tool", "PATH=");
	for (const char *const *part = found.prefixes; *part; part++)
		CHECK(!strstr(*part, "share"));
	find("/mnt/users/alice/.cache/rw/all/bin/own", "PATH=");
	expect(found.prefixes, "");
}

static void bin_folders_only(void)
{
	start();
	make_program("/mnt/tools/go/go", "\177ELF");
	make_program("/mnt/tools/sbin/tool", "\177ELF");
	make_program("/mnt/tools/xbin/tool", "\177ELF");
	find("/mnt/tools/go/go", "PATH=");
	expect(found.prefixes, "");
	find("/mnt/tools/sbin/tool", "PATH=");
	expect(found.prefixes, "");
	find("/mnt/tools/xbin/tool", "PATH=");
	expect(found.prefixes, "");
}

/* A folder of sources is the caller's own work, unless it is the release of a Go. */
static void sources_of_go_only(void)
{
	start();
	home = "HOME=/mnt/users/alice";
	make_program("/mnt/users/alice/go/bin/gopls", "\177ELF");
	make_program("/mnt/users/alice/go/src/mine.go", "secret");
	find("gopls", "PATH=/mnt/users/alice/go/bin");
	expect(found.prefixes, "/mnt/users/alice/go/bin ");
	put_text("/mnt/users/alice/go/VERSION", "1.0\n"); /* as many a project has */
	find("gopls", "PATH=/mnt/users/alice/go/bin");
	expect(found.prefixes, "/mnt/users/alice/go/bin ");
	CHECK(unlink("/mnt/users/alice/go/VERSION") == 0);
	put_text("/mnt/users/alice/go/VERSION", "go1.22");
	find("gopls", "PATH=/mnt/users/alice/go/bin");
	expect(found.prefixes,
	       "/mnt/users/alice/go/bin /mnt/users/alice/go/VERSION /mnt/users/alice/go/src ");
}

static void rust(void)
{
	start();
	home = "HOME=/mnt/users/alice";
	make_program("/mnt/users/alice/.cargo/bin/rustup", "\177ELF");
	make_link("/mnt/users/alice/.cargo/bin/cargo", "rustup");
	make_program("/mnt/users/alice/.rustup/toolchains/stable/bin/cargo", "\177ELF");
	put_text("/mnt/users/alice/.rustup/settings.toml", "");
	find("cargo", "PATH=/mnt/users/alice/.cargo/bin");
	expect(found.prefixes,
	       "/mnt/users/alice/.rustup/toolchains "
	       "/mnt/users/alice/.rustup/settings.toml /mnt/users/alice/.cargo/bin ");
	expect(found.paths, "/mnt/users/alice/.cargo/bin ");
	expect(found.env, "RUSTUP_AUTO_INSTALL=0 RUSTUP_HOME=/mnt/users/alice/.rustup ");
	find("rustc", "PATH=/mnt/users/alice/.cargo/bin");
	expect(found.env, "");
}

static void rust_elsewhere(void)
{
	const char *env[] = { "PATH=/mnt/tools/cargo/bin", "HOME=/mnt/users/alice",
			      "RUSTUP_HOME=/mnt/tools/rustup/", "RUSTUP_TOOLCHAIN=nightly", NULL };
	const char *argv[] = { "cargo", NULL };

	start();
	make_program("/mnt/tools/cargo/bin/rustup", "\177ELF");
	make_link("/mnt/tools/cargo/bin/cargo", "rustup");
	make_program("/mnt/tools/rustup/toolchains/nightly/bin/cargo", "\177ELF");
	CHECK(toolchain_find(&(struct toolchain_request){ .plan = &plan,
							  .argv = argv,
							  .caller_env = env,
							  .cwd = "/mnt/users/alice/project" },
			     &arena, &found) == 0);
	expect(found.prefixes, "/mnt/tools/rustup/toolchains /mnt/tools/cargo/bin ");
	expect(found.env, "RUSTUP_AUTO_INSTALL=0 RUSTUP_HOME=/mnt/tools/rustup "
			  "RUSTUP_TOOLCHAIN=nightly ");
}

#define ASDF "/mnt/users/alice/.asdf"

/* What an asdf or mise shim would start is found without them. */
static void shims(void)
{
	start();
	home = "HOME=/mnt/users/alice";
	make_program(ASDF "/shims/node", "#!/bin/sh\nexec asdf\n");
	make_program(ASDF "/installs/nodejs/18.1/bin/node", "\177ELF");
	find("node", "PATH=" ASDF "/shims");
	expect(found.paths, ASDF "/installs/nodejs/18.1/bin " ASDF "/shims ");
	make_program(ASDF "/installs/nodejs/20.2/bin/node", "\177ELF");
	find("node", "PATH=" ASDF "/shims"); /* two, and nobody says which */
	expect(found.paths, ASDF "/shims ");
	put_text("/mnt/users/alice/.tool-versions", "ruby 3.1\nnodejs 20.2\n");
	find("node", "PATH=" ASDF "/shims");
	expect(found.paths, ASDF "/installs/nodejs/20.2/bin " ASDF "/shims ");
	put_text("/mnt/users/alice/project/mise.toml", "[tools]\nnodejs = \"18.1\" # why\n");
	find("node", "PATH=" ASDF "/shims");
	expect(found.paths, ASDF "/installs/nodejs/18.1/bin " ASDF "/shims ");
}

/* A version comes with a project: it is a name, and leads nowhere else. */
static void hostile_versions(void)
{
	static const char *const lines[] = {
		"nodejs ../../../tools", "nodejs /mnt/tools", "nodejs ..", "nodejs", "nodejs \"", ""
	};

	start();
	home = "HOME=/mnt/users/alice";
	make_program(ASDF "/shims/node", "#!/bin/sh\n");
	make_program(ASDF "/installs/nodejs/18.1/bin/node", "\177ELF");
	make_program(ASDF "/installs/nodejs/20.2/bin/node", "\177ELF");
	make_program("/mnt/tools/bin/node", "\177ELF");
	make_program(ASDF "/installs/bin/node", "\177ELF");
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		put_text("/mnt/users/alice/project/.tool-versions", lines[i]);
		find("node", "PATH=" ASDF "/shims");
		expect(found.paths, ASDF "/shims ");
	}
}

static void volta(void)
{
	start();
	home = "HOME=/mnt/users/alice";
	make_program("/mnt/users/alice/.volta/bin/volta-shim", "\177ELF");
	make_link("/mnt/users/alice/.volta/bin/node", "volta-shim");
	make_program("/mnt/users/alice/.volta/tools/image/node/18.1/bin/node", "\177ELF");
	make_program("/mnt/users/alice/.volta/tools/image/node/20.2/bin/node", "\177ELF");
	make_parents("/mnt/users/alice/.volta/tools/user/x");
	put_text("/mnt/users/alice/.volta/tools/user/platform.json",
		 "{\n  \"node\": {\n    \"runtime\": \"20.2\",\n    \"npm\": null\n  }\n}\n");
	find("node", "PATH=/mnt/users/alice/.volta/bin");
	expect(found.paths, "/mnt/users/alice/.volta/tools/image/node/20.2/bin "
			    "/mnt/users/alice/.volta/bin ");
}

static void texts(void)
{
	static const char path[] = "PATH=/mnt/tools/a/bin:/mnt/tools/b/bin:/usr/bin";
	const char *shell[] = { "bash", "-lc", "two", NULL };

	start();
	make_program("/mnt/tools/a/bin/one", "\177ELF");
	make_program("/mnt/tools/b/bin/two", "\177ELF");
	find_text("one x.py", path);
	expect(found.paths, "/mnt/tools/a/bin ");
	find_text("cd sub&&X=1 one \"$(two)\"", path);
	expect(found.paths, "/mnt/tools/a/bin /mnt/tools/b/bin ");
	find_text("/mnt/tools/b/bin/two", path); /* as argv[0] would be */
	expect(found.paths, "/mnt/tools/b/bin ");
	find_text("cat /mnt/tools/b/bin/two -one", path);
	expect(found.prefixes, "");
	find_text(" ;; ", path);
	expect(found.prefixes, "");
	find_argv(shell, path);
	expect(found.paths, "/mnt/tools/b/bin ");
	shell[1] = "--rcfile";
	find_argv(shell, path);
	expect(found.paths, "");
	shell[1] = NULL;
	find_argv(shell, path);
	expect(found.paths, "");
}

static void odd_calls(void)
{
	static const char *const argv[] = { "go", NULL };

	start();
	CHECK(toolchain_find(&(struct toolchain_request){ .plan = &plan, .cwd = "/" }, &arena,
			     &found) == 0);
	expect(found.prefixes, "");
	CHECK(toolchain_find(&(struct toolchain_request){ .plan = &plan, .argv = argv, .cwd = "/" },
			     &arena, &found) == 0);
	expect(found.prefixes, "");
	find("", "PATH=/mnt/tools/go/bin");
	expect(found.prefixes, "");
	arena_done(&arena);
	arena_init(&arena, 16);
	CHECK(toolchain_find(&(struct toolchain_request){ .plan = &plan, .argv = argv, .cwd = "/" },
			     &arena, &found) == -ENOMEM);
}

AS_BOTH(by_path)
AS_BOTH(home_is_never_taken)

static const struct tap_test tests[] = {
	BOTH_ROWS(by_path, "a program is found through PATH"),
	{ "what is seen anyway is not added", covered_anyway },
	{ "nor is the folder a link leads to", a_link_to_what_is_seen },
	{ "a virtual environment's link leads to its interpreter", virtual_environment },
	{ "a first line leads to its interpreter", interpreters },
	{ "loops and long lines end", no_end },
	{ "a pipe is not waited for", a_pipe_is_not_waited_for },
	BOTH_ROWS(home_is_never_taken, "a home directory itself is never taken"),
	{ "only parts of a prefix are shown", only_parts },
	{ "nor is it by a link", home_by_a_link },
	{ "nor by a link that lies elsewhere", home_by_any_link },
	{ "only what lies in a bin folder", bin_folders_only },
	{ "sources only of a Go release", sources_of_go_only },
	{ "a rustup proxy brings its toolchains", rust },
	{ "rustup's folder may be elsewhere", rust_elsewhere },
	{ "a shim's program is found by its version", shims },
	{ "a version is a name", hostile_versions },
	{ "volta's choice is read", volta },
	{ "a text's words are looked up", texts },
	{ "no program, no memory", odd_calls },
};

TAP_MAIN(tests)
