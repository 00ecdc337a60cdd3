// The official client library, told what to do by lines on stdin, for the tests in Python.
//
//   node client.mjs PROGRAM ARG...
//
// A line is {"do": METHOD, "with": [ARGUMENT...], ...}, answered by {"ok": RESULT} or {"error": {code, message}} with what
// came meanwhile in "progress". "progress": true asks for it, "cancel_ms" aborts after so long. {"do": "logs"} gives the log
// messages so far, {"do": "close"} closes the client.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [command, ...args] = process.argv.slice(2);
const logs = [];
const client = new Client({ name: "caisson-tests", version: "1.0.0" }, { capabilities: {} });
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });

client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
  logs.push(params);
});

function tell(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

const own = {
  hello: () => ({
    server: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
    pid: transport.pid,
  }),
  logs: () => logs,
  close: async () => {
    await client.close();
    return {};
  },
};

async function act(step) {
  const progress = [];
  const options = { timeout: step.timeout_ms ?? 30000, resetTimeoutOnProgress: true };
  if (step.progress) options.onprogress = (one) => progress.push(one);
  if (step.cancel_ms) options.signal = AbortSignal.timeout(step.cancel_ms);
  try {
    const words = step.with ?? [];
    const ok = own[step.do]
      ? await own[step.do]()
      : step.do === "callTool"
        ? await client.callTool(words[0], undefined, options)
        : await client[step.do](...words);
    return { ok, progress };
  } catch (error) {
    return { error: { code: error.code ?? null, message: String(error.message ?? error) }, progress };
  }
}

await client.connect(transport);
for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  const done = act(step).then((answer) => tell({ id: step.id, ...answer }));
  if (!step.beside) await done;
}
await client.close();
