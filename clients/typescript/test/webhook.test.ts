/** Webhooks: one that the real server posts, and some that nobody should believe. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { test } from "node:test";
import { MemoryClient, verifyWebhook, WebhookVerificationError } from "whatsapp-memory-client";

const { MEMORY_URL = "", MEMORY_TOKEN = "", HOOK_PORT, HOOK_SECRET = "", HOOK_CHAT } = process.env;
const secret = `whsec_${Buffer.from("a secret of tests").toString("base64")}`;
const other = `whsec_${Buffer.from("the secret before").toString("base64")}`;
const body =
  '{"type": "memory.created", "timestamp": "2026-01-10T12:00:00Z", "data": {"name": "דנה"}}';

function signature(sentAt: string, by = secret, content = body): string {
  const key = Buffer.from(by.replace("whsec_", ""), "base64");
  const proof = createHmac("sha256", key).update(`evt_1.${sentAt}.${content}`).digest("base64");
  return `v1,${proof}`;
}

function headers(seconds = 0, by = secret) {
  const sentAt = String(Math.floor(Date.now() / 1000) + seconds);
  return {
    "Webhook-Id": "evt_1",
    "webhook-timestamp": sentAt,
    "webhook-signature": signature(sentAt, by),
  };
}

test(
  "What the server posts is verified",
  { skip: !HOOK_PORT && "no server posts" },
  async (context) => {
    const posted = new Promise((resolve, reject) => {
      const server = createServer(async (call, answer) => {
        const blocks: Buffer[] = [];
        for await (const block of call) blocks.push(block as Buffer);
        answer.writeHead(204).end();
        verifyWebhook(Buffer.concat(blocks), call.headers, HOOK_SECRET).then(resolve, reject);
      }).listen(Number(HOOK_PORT), "127.0.0.1");
      context.after(() => server.close());
    });
    const client = new MemoryClient({ baseUrl: MEMORY_URL, token: MEMORY_TOKEN });
    const fact = { content: "Webhooks are posted", whatsapp_chat: HOOK_CHAT };
    const { memory_id } = await client.remember(fact);
    const { type, data } = (await posted) as { type: string; data: Record<string, unknown> };
    assert.deepEqual(
      [type, data.memory_id, data.whatsapp_chat],
      ["memory.created", memory_id, HOOK_CHAT],
    );
  },
);

test("A right signature is believed", async () => {
  const now = headers();
  const both = `${signature(now["webhook-timestamp"], other)} ${now["webhook-signature"]}`;
  const right: [Parameters<typeof verifyWebhook>[1], string | string[]][] = [
    [now, secret],
    [new Headers(now), secret],
    [{ ...now, "webhook-signature": ["v1,?", now["webhook-signature"]] }, secret],
    [{ ...now, "webhook-signature": `v1a,x v2,y v1,?? ${both}` }, secret],
    [headers(-290), [other, secret]],
    [headers(0, other), [secret, other]],
    [now, secret.replace("whsec_", "")],
  ];
  for (const [given, by] of right) {
    const bytes = new TextEncoder().encode(body);
    for (const content of [body, bytes, bytes.buffer]) {
      const event = await verifyWebhook(content, given, by);
      assert.deepEqual([event.id, event.type, event.data.name], ["evt_1", "memory.created", "דנה"]);
    }
  }
});

test("Nothing else is believed", async () => {
  const now = headers();
  const missing = Object.keys(now).map((name) => ({ ...now, [name]: undefined }));
  const wrong: [Parameters<typeof verifyWebhook>[1], string | string[], string?][] = [
    ...missing.map((each): [typeof each, string] => [each, secret]),
    [{}, secret],
    [now, other],
    [now, []],
    [now, secret, `${body} `],
    [headers(-310), secret],
    [headers(310), secret],
    [{ ...now, "webhook-timestamp": "1e3" }, secret],
    [{ ...now, "webhook-timestamp": `${now["webhook-timestamp"]}.5` }, secret],
    [{ ...now, "Webhook-Id": "evt_2" }, secret],
    [{ ...now, "webhook-signature": now["webhook-signature"].replace("v1,", "v1a,") }, secret],
    [{ ...now, "webhook-signature": "v1," }, secret],
  ];
  for (const [given, by, content] of wrong) {
    await assert.rejects(verifyWebhook(content ?? body, given, by), WebhookVerificationError);
  }
  await assert.rejects(verifyWebhook(body, now, ""), TypeError);
});
