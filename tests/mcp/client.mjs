// SPDX-License-Identifier: Apache-2.0
// An official client, v1 or v2, driven by lines of JSON: node client.mjs MODULES v1|v2 legacy|auto|modern TARGET
// TARGET is {"url", "token"} or {"command", "args"}. In: {n, do, …}; out: {n, result} or {n, error}, and {n, progress}, {asked} before.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [modules, sdk, era, targetText] = process.argv.slice(2);
const require = createRequire(modules + "/x.js");
const target = JSON.parse(targetText);
const say = (value) => process.stdout.write(JSON.stringify(value) + "\n");
let user = { action: "decline" };

function loadV1() {
  const base = "@modelcontextprotocol/sdk/";
  return {
    ...require(base + "client/index.js"),
    ...require(base + "client/streamableHttp.js"),
    ...require(base + "client/stdio.js"),
    elicit: require(base + "types.js").ElicitRequestSchema,
  };
}

function loadV2() {
  return { ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio"), elicit: "elicitation/create" };
}

const lib = sdk === "v1" ? loadV1() : loadV2();
const client = new lib.Client(
  { name: "pale-test", version: "1" },
  {
    capabilities: { elicitation: {} },
    versionNegotiation: { mode: era === "modern" ? { pin: "2026-07-28" } : era },
  },
);
client.setRequestHandler(lib.elicit, async (request) => {
  say({ asked: request.params });
  return user;
});
const transport = target.url
  ? new lib.StreamableHTTPClientTransport(new URL(target.url), { requestInit: { headers: { Authorization: "Bearer " + target.token } } })
  : new lib.StdioClientTransport({ command: target.command, args: target.args, env: process.env, stderr: "inherit" });

const under = new Map();

async function call({ n, name, arguments: args, timeout }) {
  const stop = new AbortController();
  under.set(n, stop);
  const options = { signal: stop.signal, onprogress: (progress) => say({ n, progress }), timeout: timeout ?? 30000 };
  const params = { name, arguments: args };
  return sdk === "v1" ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

const deeds = {
  list: () => client.listTools(),
  call,
  cancel: async ({ of }) => under.get(of).abort("enough"),
  user: async ({ answer }) => void (user = answer),
  request: ({ method, params }) => (sdk === "v1" ? client.request({ method, params }, require("@modelcontextprotocol/sdk/types.js").ResultSchema) : client.request({ method, params })),
  close: () => client.close(),
};

try {
  await client.connect(transport);
} catch (e) {
  say({ error: { code: e.code, message: String(e) } });
  process.exit(1);
}
say({ ready: client.getServerVersion(), era: client.getProtocolEra?.() ?? "legacy", capabilities: client.getServerCapabilities() });
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  deeds[order.do](order).then(
    (result) => say({ n: order.n, result: result ?? null }),
    (e) => say({ n: order.n, error: { code: e.code, message: String(e.message ?? e) } }),
  );
}
process.exit(0);
