/** The official client of OpenAI, with this server's memory by another base URL. */
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: `${process.env.MEMORY_URL ?? "http://127.0.0.1:8000"}/v1`,
  apiKey: process.env.MEMORY_TOKEN,
});
const call = {
  model: "gpt-4o-mini",
  user: process.env.MEMORY_CHAT ?? "dana@example.com",
  messages: [{ role: "user" as const, content: "When does TestCorp pay?" }],
};

const answer = await client.chat.completions.create(call);
console.log("whole:", answer.choices[0]?.message.content);

let text = "";
for await (const chunk of await client.chat.completions.create({ ...call, stream: true })) {
  text += chunk.choices[0]?.delta.content ?? "";
}
console.log("streamed:", text);
