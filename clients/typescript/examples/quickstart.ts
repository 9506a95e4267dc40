/** Remembers, recalls, answers and forgets.
 *
 * MEMORY_URL=http://127.0.0.1:8000 MEMORY_TOKEN=… node build/examples/quickstart.js
 */
import { MemoryClient, MemoryServerError } from "whatsapp-memory-client";

const chat = "15550100456@c.us";
const client = new MemoryClient({
  baseUrl: process.env.MEMORY_URL ?? "http://127.0.0.1:8000",
  token: process.env.MEMORY_TOKEN ?? "",
});

const memory = await client.remember({ content: "We open at 9", whatsapp_chat: chat });
console.log("remembered:", memory.content, memory.outcome);

const { results } = await client.recall({ query: "When do you open?", whatsapp_chat: chat });
console.log("recalled:", results[0]?.content);

const said = { whatsapp_chat: chat, content: "When do you open?" };
for await (const event of client.chatStream(said)) {
  if (event.event === "delta") process.stdout.write(event.text);
  if (event.event === "done") console.log("\nanswered:", event.answer.outcome);
}

const { session_id } = await client.openSession(chat);
const context = await client.context(session_id, { query: "And on Sundays?", persona: false });
console.log("for a model of your own:", context.messages.map(({ role }) => role).join(", "));
await client.exchange(session_id, { query: "And on Sundays?", reply: "We are closed." });

const query = { whatsapp_chat: chat, limit: 50 };
for await (const each of client.list("/api/v1/memories/", { query })) {
  console.log("listed:", each.content);
}

console.log("forgotten:", (await client.forget(memory.memory_id)).probe);
try {
  await client.forget(memory.memory_id);
} catch (error) {
  if (error instanceof MemoryServerError) console.log("once more:", error.code, error.status);
}
