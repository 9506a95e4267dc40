/** LangChain's chat model, with this server's memory by another base URL. */
import { ChatOpenAI } from "@langchain/openai";

const model = new ChatOpenAI({
  model: "gpt-4o-mini",
  apiKey: process.env.MEMORY_TOKEN,
  // Whose conversation this is.
  user: process.env.MEMORY_CHAT ?? "dana@example.com",
  configuration: { baseURL: `${process.env.MEMORY_URL ?? "http://127.0.0.1:8000"}/v1` },
});

const answer = await model.invoke("When does TestCorp pay?");
console.log("whole:", answer.content);

let text = "";
for await (const chunk of await model.stream("When does TestCorp pay?")) text += chunk.content;
console.log("streamed:", text);
