/** Server-sent events, read as they come. */

/** Yield the events of a stream. Throws if nothing comes for `silence` milliseconds. */
export async function* events(body: unknown, silence: number) {
  let event = "message";
  let data: string[] = [];
  for await (const line of lines(body as ReadableStream<Uint8Array>, silence)) {
    const colon = `${line}:`.indexOf(":");
    const value = line.slice(colon + 1).replace(/^ /, "");
    const field = line.slice(0, colon);
    if (field === "event") event = value;
    if (field === "data") data.push(value);
    if (line) continue;
    if (data.length) yield { event, data: JSON.parse(data.join("\n")) };
    [event, data] = ["message", []];
  }
}

async function* lines(body: ReadableStream<Uint8Array>, silence: number) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await within(silence, reader.read());
      rest += decoder.decode(value, { stream: !done });
      // The last CR may be half of an end of line.
      const found = rest.split(/\r\n|\n|\r(?!$)/);
      rest = found.pop() ?? "";
      yield* found;
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new DOMException("The server fell silent.", "TimeoutError");
    timer = setTimeout(() => reject(error), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
