/** Vercel's AI SDK, with this server's memory by another base URL. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";

const memory = createOpenAICompatible({
  name: "memory",
  baseURL: `${process.env.MEMORY_URL ?? "http://127.0.0.1:8000"}/v1`,
  apiKey: process.env.MEMORY_TOKEN,
});
const call = {
  model: memory("gpt-4o-mini"),
  system: "You are BakeryBot.",
  prompt: "When does TestCorp pay?",
  // Whose conversation this is.
  headers: { "X-Memory-Chat": process.env.MEMORY_CHAT ?? "dana@example.com" },
};

console.log("whole:", (await generateText(call)).text);
console.log("streamed:", await streamText(call).text);
