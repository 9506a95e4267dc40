/** The nodes as package.json names them, with what n8n gives them, against the real server. */
import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import type { IDataObject, INodeExecutionData } from "n8n-workflow";
import { functions, type Given, token, url } from "./stand";

const ROOT = join(__dirname, "../..");
const { n8n } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf-8")) as {
  n8n: { nodes: string[]; credentials: string[] };
};

/** Return what a file of the package exports, found by its name as n8n does. */
function loaded(file: string): any {
  const name = file.split("/").at(-1)!.split(".")[0];
  return new (require(join(ROOT, file))[name])();
}

const [action, trigger] = n8n.nodes.map(loaded);

async function run(
  resource: string,
  operation: string,
  parameters: IDataObject,
  given: Partial<Given> = {},
) {
  const items = [{ ...parameters, resource, operation }];
  const [made] = await action.execute.call(functions({ parameters: items, ...given }));
  return made.map((each: INodeExecutionData) => each.json);
}

function newChat(): string {
  return `n8n-${randomUUID()}@external`;
}

test("The package names what it holds", () => {
  const names = [...n8n.nodes, ...n8n.credentials].map((file) => {
    const { name, displayName, icon } = { ...loaded(file), ...loaded(file).description };
    assert(name && displayName, file);
    assert(existsSync(join(ROOT, file, "..", icon.replace("file:", ""))), icon);
    return name;
  });
  assert.deepEqual(names, ["whatsappMemory", "whatsappMemoryTrigger", "whatsappMemoryApi"]);
});

test("Every operation that can be chosen is carried out", async () => {
  const chat = newChat();
  const [stored] = await run("memory", "remember", {
    content: "TestCorp pays in 30 days",
    whatsappChat: chat,
    fields: { tags: "payments, terms", category: "", expires_at: "" },
  });
  assert.deepEqual([stored.outcome, stored.tags], ["created", ["payments", "terms"]]);
  const query = "When does TestCorp pay?";
  const found = await run("memory", "recall", { query, whatsappChat: chat, fields: { top_k: 1 } });
  assert.deepEqual(
    found.map((each: IDataObject) => each.content),
    ["TestCorp pays in 30 days"],
  );
  const said = { whatsappChat: chat, role: "user", content: "I live in Haifa", learn: true };
  const [{ messages, learning }] = await run("message", "store", said);
  assert.deepEqual([messages[0].content, learning], ["I live in Haifa", "queued"]);
  await run("message", "exchange", { whatsappChat: chat, query: "Open?", reply: "At nine." });
  const system = "You are BakeryBot.";
  const asked = { whatsappChat: chat, query, fields: { system, persona: false, max_tokens: 2000 } };
  const [context] = await run("context", "get", asked);
  assert.match(context.messages[0].content, /BakeryBot[^]*30 days/);
  assert.equal(context.messages.at(-1).content, query);
  const [answer] = await run("chat", "ask", { whatsappChat: chat, content: "Hello" });
  assert.deepEqual([answer.reply, answer.outcome], ["answer to: Hello", "answered"]);
  const [receipt] = await run("memory", "forget", { memoryId: stored.memory_id });
  assert.equal(receipt.probe, "absent");
});

test("An item that is tried again is done once", async () => {
  const chat = newChat();
  const said = { whatsappChat: chat, role: "user", content: "Hello" };
  const [first] = await run("message", "store", said, { executionId: "1" + chat });
  assert.deepEqual(await run("message", "store", said, { executionId: "1" + chat }), [first]);
  const [next] = await run("message", "store", said, { executionId: "2" + chat });
  assert.notEqual(next.messages[0].message_id, first.messages[0].message_id);
});

test("A refusal has the server's words, and others go on where that is wanted", async () => {
  const wrong = { content: "x", whatsappChat: "nobody" };
  await assert.rejects(run("memory", "remember", wrong), {
    name: "NodeApiError",
    httpCode: "400",
    message: /^whatsapp_chat: /,
  });
  await assert.rejects(run("memory", "remember", wrong, { token: "no" }), { httpCode: "401" });
  const [failed] = await run("memory", "remember", wrong, { continueOnFail: true });
  assert.match(failed.error, /^whatsapp_chat: /);
});

/** Call the trigger with a request; the status that it answers and the events that it passes on. */
async function received(rawBody: Buffer, headers: object, secret?: string) {
  let status = 200;
  const response = {
    status: (code: number) => ((status = code), response),
    end: () => undefined,
  };
  const given = functions({ parameters: [{}], staticData: { secret } });
  const { workflowData } = await trigger.webhook.call({
    ...given,
    getRequestObject: () => ({ rawBody }),
    getHeaderData: () => headers,
    getResponseObject: () => response,
  });
  const events = workflowData?.[0].map((each: INodeExecutionData) => each.json) ?? [];
  return [status, events];
}

test("Only signed events start a workflow", async () => {
  const secret = `whsec_${Buffer.from("a secret of tests").toString("base64")}`;
  const body = Buffer.from('{"type": "memory.created", "data": {"name": "דנה"}}');
  const signed = (seconds: number, by = "a secret of tests") => {
    const sentAt = String(Math.floor(Date.now() / 1000) + seconds);
    const head = `evt_1.${sentAt}.`;
    const proof = createHmac("sha256", by).update(head).update(body).digest("base64");
    const signatures = `v1a,x v1,?? v1,${proof}`;
    return { "webhook-id": "evt_1", "webhook-timestamp": sentAt, "webhook-signature": signatures };
  };
  const event = { id: "evt_1", type: "memory.created", data: { name: "דנה" } };
  for (const seconds of [0, -290]) {
    assert.deepEqual(await received(body, signed(seconds), secret), [200, [event]]);
  }
  const wrong: [Buffer, object, string?][] = [
    [body, {}, secret],
    [body, signed(-310), secret],
    [body, signed(310), secret],
    [body, signed(0, "another"), secret],
    [body, { ...signed(0), "webhook-id": "evt_2" }, secret],
    [body, { ...signed(0), "webhook-signature": "v1," }, secret],
    [Buffer.concat([body, body]), signed(0), secret],
    [body, signed(0, ""), undefined],
    [body, signed(0, ""), ""],
    [body, signed(0, ""), "whsec_"],
  ];
  for (const each of wrong) assert.deepEqual(await received(...each), [401, []]);
});

async function called(method: string, path: string): Promise<Response> {
  const headers = { Authorization: `Bearer ${token}` };
  return await fetch(`${url}/api/v1/webhooks/endpoints/${path}`, { method, headers });
}

test("A workflow has an endpoint while it is active", async (context) => {
  const posted: [Buffer, object][] = [];
  const server = createServer(async (call, answer) => {
    const blocks: Buffer[] = [];
    for await (const block of call) blocks.push(block as Buffer);
    posted.push([Buffer.concat(blocks), call.headers]);
    answer.writeHead(204).end();
  }).listen(0, "127.0.0.1");
  context.after(() => server.close());
  await new Promise((ready) => server.once("listening", ready));
  const { port } = server.address() as { port: number };
  const staticData: IDataObject = {};
  const parameters = { events: ["memory.created"], chats: `${newChat()}, ` };
  const hook = (name: string, changes: IDataObject = {}) =>
    trigger.webhookMethods.default[name].call(
      functions({
        parameters: [{ ...parameters, ...changes }],
        staticData,
        webhookUrl: `http://127.0.0.1:${port}/`,
      }),
    );
  assert.equal(await hook("checkExists"), false);
  assert.equal(await hook("create"), true);
  assert.equal(await hook("checkExists"), true);
  const { endpointId, secret } = staticData as Record<string, string>;
  const endpoint = (await (await called("GET", `${endpointId}/`)).json()) as IDataObject;
  assert.deepEqual(endpoint.event_types, ["memory.created"]);
  assert.deepEqual(endpoint.whatsapp_chats, [parameters.chats.slice(0, -2)]);
  await called("POST", `${endpointId}/test/`);
  const [status, [event]] = (await received(...posted[0], secret)) as [number, IDataObject[]];
  assert.deepEqual([status, event.type], [200, "webhook.test"]);
  // What was changed in the editor leads to another endpoint.
  assert.equal(await hook("checkExists", { events: [] }), false);
  assert.equal((await called("GET", `${endpointId}/`)).status, 404);
  await hook("create");
  assert.equal((await called("DELETE", `${staticData.endpointId}/`)).ok, true);
  assert.equal(await hook("delete"), true);
  assert.deepEqual(staticData, {});
});
