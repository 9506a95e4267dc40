/** The client against the real server, and against what networks do on the way to it. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test, type TestContext } from "node:test";
import {
  MemoryClient,
  MemoryServerError,
  result,
  type ClientOptions,
} from "whatsapp-memory-client";
import { flaky, type Fault } from "./flaky.js";

const url = process.env.MEMORY_URL ?? "";
const token = process.env.MEMORY_TOKEN ?? "";
const client = new MemoryClient({ baseUrl: url, token });

function newChat(): string {
  return `ts-${randomUUID()}@external`;
}

async function refusal(call: Promise<unknown>): Promise<MemoryServerError> {
  try {
    await call;
  } catch (error) {
    assert(error instanceof MemoryServerError, String(error));
    return error;
  }
  return assert.fail("It was not refused.");
}

async function through(context: TestContext, options: Partial<ClientOptions>, ...faults: Fault[]) {
  const proxy = await flaky(url, ...faults);
  context.after(() => proxy.close());
  return { proxy, client: new MemoryClient({ baseUrl: proxy.url, token, ...options }) };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const each of items) found.push(each);
  return found;
}

test("A fact is remembered, recalled and forgotten", async () => {
  const chat = newChat();
  const stored = await client.remember({
    content: "TestCorp pays in 30 days",
    whatsapp_chat: chat,
  });
  assert.equal(stored.outcome, "created");
  const found = await client.recall({ query: "When does TestCorp pay?", whatsapp_chat: chat });
  assert.equal(found.results[0]?.content, "TestCorp pays in 30 days");
  const receipt = await client.forget(stored.memory_id);
  assert.equal(receipt.probe, "absent");
  const gone = await refusal(client.forget(stored.memory_id));
  assert.deepEqual([gone.code, gone.status], ["not_found", 404]);
});

test("An error names its code, its field and its request", async () => {
  const error = await refusal(client.remember({ content: "x", whatsapp_chat: "nobody" }));
  assert.deepEqual([error.status, error.errors[0]?.attr], [400, "whatsapp_chat"]);
  assert.match(error.requestId ?? "", /^[A-Za-z0-9._-]{8,64}$/);
  assert.match(error.message, /^whatsapp_chat: /);
  const stranger = new MemoryClient({ baseUrl: url, token: "wrong" });
  const unknown = await refusal(result(stranger.api.GET("/api/v1/me/")));
  assert.equal(unknown.status, 401);
});

test("The address may be given with the API's own", async () => {
  for (const end of ["/", "//", "/api/v1/", "/api/v1"]) {
    const same = new MemoryClient({ baseUrl: url + end, token: `${token}\n` });
    assert.equal((await result(same.api.GET("/api/v1/me/"))).kind, "api");
  }
});

test("What fails on its way is repeated under the same key, and done once", async (context) => {
  const faults: Record<string, Fault> = {
    "the answer is lost": { cutAfter: 1 },
    "the answer is cut off": { cutAfter: 60 },
    "nothing comes": { hangs: true },
    "the server is busy": { status: 503, headers: { "Retry-After": "0" } },
    "too many calls": { status: 429, headers: { "Retry-After": new Date(0).toUTCString() } },
    "a proxy has no server": { status: 502, body: "<h1>Bad gateway</h1>" },
    "the first call isn't finished": {
      status: 409,
      headers: { "Content-Type": "application/json" },
      body: '{"type": "client_error", "errors": [{"code": "idempotency_in_progress"}]}',
    },
  };
  for (const [name, fault] of Object.entries(faults)) {
    const chat = newChat();
    const flawed = await through(context, { timeout: 2_000 }, fault);
    const stored = await flawed.client.remember({ content: `Fact: ${name}`, whatsapp_chat: chat });
    assert.equal(stored.outcome, "created", name);
    assert.equal(flawed.proxy.keys.length, 2, name);
    assert(flawed.proxy.keys[0], name);
    assert.equal(flawed.proxy.keys[0], flawed.proxy.keys[1], name);
    const kept = await all(client.list("/api/v1/memories/", { query: { whatsapp_chat: chat } }));
    assert.equal(kept.length, 1, name);
  }
});

test("Each call has a key of its own, or the one that it is given", async (context) => {
  const { client, proxy } = await through(context, {});
  const chat = newChat();
  const fact = { content: "We open at 9", whatsapp_chat: chat };
  const own = { idempotencyKey: randomUUID() };
  const first = await client.remember(fact, own);
  assert.deepEqual(await client.remember(fact, own), first);
  assert.equal((await client.remember(fact)).outcome, "duplicate");
  await client.remember(fact);
  assert.deepEqual(proxy.keys.slice(0, 2), [own.idempotencyKey, own.idempotencyKey]);
  assert.equal(new Set(proxy.keys).size, 3);
});

test("A conditional PUT is not repeated: the second would be refused", async (context) => {
  const { client, proxy } = await through(context, {}, { cutAfter: 1 });
  const path = { category: "decisions" as const, identifier: `ts-${randomUUID()}` };
  const params = { path, header: { "If-None-Match": "*" } };
  const put = client.api.PUT("/api/v1/documents/{category}/{identifier}/", {
    params,
    body: { decision: "Use PostgreSQL" },
  });
  assert.equal((await refusal(result(put))).code, "unreachable");
  assert.equal(proxy.keys.length, 1);
});

test("It gives up, and says why", async (context) => {
  const busy: Fault = { status: 503, headers: { "Retry-After": "0" } };
  const cases: [string, number, number | null, Partial<ClientOptions>, ...Fault[]][] = [
    ["http_503", 503, 0, { retries: 1 }, busy, busy],
    ["http_429", 429, 3600, {}, { status: 429, headers: { "Retry-After": "3600" } }],
    ["unreachable", 0, null, { retries: 0 }, { cutAfter: 1 }],
    ["timeout", 0, null, { retries: 0, timeout: 50 }, { hangs: true }],
    ["http_301", 301, null, {}, { status: 301, headers: { Location: "https://other.example/" } }],
    ["unreadable", 0, null, {}, { status: 200, body: "<html>" }],
  ];
  for (const [code, status, retryAfter, options, ...faults] of cases) {
    const flawed = await through(context, options, ...faults);
    const error = await refusal(flawed.client.recall({ query: "x" }));
    assert.deepEqual([error.code, error.status, error.retryAfter], [code, status, retryAfter]);
    assert.equal(flawed.proxy.keys.length, faults.length, code);
  }
});

test("A caller ends a call", async (context) => {
  const calls = [
    (client: MemoryClient, signal: AbortSignal) => client.recall({ query: "x" }, { signal }),
    (client: MemoryClient, signal: AbortSignal) =>
      all(client.chatStream({ content: "x" }, { signal })),
  ];
  for (const start of calls) {
    const { client, proxy } = await through(context, {}, { hangs: true });
    const ending = new AbortController();
    const call = start(client, ending.signal);
    while (!proxy.keys.length) await new Promise(setImmediate);
    ending.abort();
    await assert.rejects(call, { name: "AbortError" });
    assert.equal(proxy.keys.length, 1);
  }
});

/** What doesn't compile. */
export function wrong() {
  // @ts-expect-error There is no such field.
  void client.remember({ contents: "x" });
  // @ts-expect-error It is no list.
  void client.list("/api/v1/me/");
}

test("All pages of a list are gone through", async () => {
  const chat = newChat();
  const { session_id } = await client.openSession(chat);
  const messages = [1, 2, 3, 4, 5].map((number) => ({
    role: "user" as const,
    content: `${number}`,
  }));
  const { learning } = await client.storeMessages(session_id, { messages, learn: true });
  assert.equal(learning, "queued");
  const params = { path: { session_id }, query: { limit: 2 } };
  const found = await all(client.list("/api/v1/sessions/{session_id}/messages/", params));
  assert.deepEqual(found.map((each) => each.content).sort(), ["1", "2", "3", "4", "5"]);
});

test("An exchange of a model of one's own stands in the next context", async () => {
  const { session_id } = await client.openSession(newChat());
  await client.exchange(session_id, { query: "When do you open?", reply: "At nine." });
  const { messages } = await client.context(session_id, {
    query: "And on Sundays?",
    persona: false,
  });
  const said = messages.slice(1).map((each) => each.content);
  assert.deepEqual(said, ["When do you open?", "At nine.", "And on Sundays?"]);
});

test("A chat is answered, whole and as a stream", async () => {
  const chat = newChat();
  const answer = await client.chat({ whatsapp_chat: chat, content: "Hello" });
  assert.deepEqual([answer.reply, answer.outcome], ["answer to: Hello", "answered"]);
  const events = await all(client.chatStream({ whatsapp_chat: chat, content: "Hello again" }));
  assert.deepEqual([...new Set(events.map(({ event }) => event))], ["accepted", "delta", "done"]);
});

test("A stream goes on where it was cut off, whatever bytes it comes in", async (context) => {
  const said = "שלום, מתי אתם פותחים? 👩‍👩‍👧 ".repeat(20).trim();
  const cuts: Fault[][] = [[{ pieces: 1 }], [{ cutAfter: 10 }], [{ cutAfter: 700, pieces: 3 }]];
  for (const faults of [...cuts, [{ cutAfter: 400 }, { cutAfter: 900 }, { pieces: 7 }]]) {
    const { client, proxy } = await through(context, {}, ...faults);
    const chat = newChat();
    const events = await all(client.chatStream({ whatsapp_chat: chat, content: said }));
    const deltas = events.map((each) => (each.event === "delta" ? each.text : ""));
    const end = events.at(-1);
    assert(end?.event === "done");
    assert.equal(deltas.join(""), end.answer.reply);
    assert.equal(end.answer.reply, `answer to: ${said}`);
    assert.equal(events.filter(({ event }) => event === "accepted").length, 1);
    assert.equal(new Set(proxy.keys).size, 1);
    const path = { session_id: end.answer.session_id ?? "" };
    const kept = client.list("/api/v1/sessions/{session_id}/messages/", { path });
    assert.equal((await all(kept)).length, 2);
  }
});

test("Streams of other servers are read, too", async (context) => {
  const answer = { reply: "a\nb", outcome: "answered" };
  const body = [
    "\uFEFF: comment\r\n\r\nevent:accepted\rdata:{}\r\r",
    'retry: 5\nevent: delta\ndata: {"text":\ndata: "a\\nb"}\n\n',
    `event: done\ndata: ${JSON.stringify(answer)}\r\n\r\n`,
  ].join("");
  const stream: Fault = { status: 200, headers: { "Content-Type": "text/event-stream" }, body };
  const { client } = await through(context, {}, stream);
  const events = await all(client.chatStream({ content: "x" }));
  assert.deepEqual(events, [
    { event: "accepted" },
    { event: "delta", text: "a\nb" },
    { event: "done", answer },
  ]);
  const error = `event: error\ndata: {"errors": [{"code": "not_answered", "detail": "No."}]}\n\n`;
  const refusing = await through(context, {}, { ...stream, body: error });
  const refused = await refusal(all(refusing.client.chatStream({ content: "x" })));
  assert.equal(refused.code, "not_answered");
});
