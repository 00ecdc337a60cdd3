// Runs a command in a copy of the project and shows what it writes as it comes; then what was denied and what it changed.
// Ctrl-C ends it and everything it started.
//
//   npx tsc --module nodenext --target es2022 stream.ts     in a folder made as docs/typescript.md says
//   node stream.js . 'make test'

import { Cancelled, CaissonError, Sandbox } from "caisson";

const [folder = ".", command = "make test"] = process.argv.slice(2);
const interrupt = new AbortController();
process.once("SIGINT", () => interrupt.abort());

async function main(): Promise<number> {
  await using sandbox = await Sandbox.open({
    workspace: `${folder}:cow`,
    limits: { memory: "1GiB", processes: 128 },
    onViolation: ({ event, say }) => console.error(`! ${event}: ${say}`),
  });
  const stream = sandbox.stream(command, { signal: interrupt.signal, timeoutMs: 45_000 });
  const rest = { stdout: "", stderr: "", tty: "" };
  const show = (name: keyof typeof rest, line: string): void =>
    console.log(`${name} | ${JSON.stringify(line).slice(1, -1)}`); // it may hold anything: nothing of it reaches the terminal raw
  for await (const { stream: name, data } of stream) {
    // What is not taken here is not sent: a slow terminal slows the command and fills no memory.
    const lines = (rest[name] + data.toString("latin1")).split("\n");
    rest[name] = lines.pop() ?? "";
    for (const line of lines) show(name, Buffer.from(line, "latin1").toString());
  }
  for (const name of ["stdout", "stderr"] as const) if (rest[name]) show(name, Buffer.from(rest[name], "latin1").toString());
  const { termination, exitCode, usage } = await stream.result();
  console.log(`${termination.reason}, status ${exitCode}, ${(usage.cpuUs / 1e6).toFixed(2)} s of CPU`);
  for (const { change, path } of (await sandbox.diff()).changes) console.log(`${change} ${path}`);
  return exitCode ?? 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof CaissonError)) throw error;
  console.error(error instanceof Cancelled ? "interrupted" : `${error.stage}: ${error.message}`);
  process.exitCode = error instanceof Cancelled ? 130 : 125;
}
