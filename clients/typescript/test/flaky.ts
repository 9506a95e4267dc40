/** A proxy before the real server, which does to its calls what networks do. */
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Fault {
  /** Answered in place of the server. */
  status?: number;
  headers?: Record<string, string>;
  body?: string;
  /** The server gets the call and acts; its answer is cut off after so many bytes. */
  cutAfter?: number;
  /** The answer comes in pieces of so many bytes. */
  pieces?: number;
  /** There is no answer. */
  hangs?: boolean;
}

export interface Flaky {
  url: string;
  /** The Idempotency-Key of each call that came. */
  keys: (string | undefined)[];
  close(): void;
}

/** Return a proxy that does the first thing to the first call, and so on; then it is a good one. */
export async function flaky(target: string, ...faults: Fault[]): Promise<Flaky> {
  const keys: (string | undefined)[] = [];
  const server = createServer((call, answer) => {
    keys.push(call.headers["idempotency-key"] as string | undefined);
    const fault = faults.shift() ?? {};
    if (fault.hangs) return;
    if (fault.status) {
      answer.writeHead(fault.status, fault.headers).end(fault.body);
      return;
    }
    const on = request(target + call.url, { method: call.method, headers: call.headers });
    on.on("response", (got) => void passOn(got, answer, fault));
    call.pipe(on);
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, keys, close };
}

async function passOn(got: IncomingMessage, answer: ServerResponse, fault: Fault) {
  answer.writeHead(got.statusCode ?? 502, got.headers);
  let left = fault.cutAfter ?? Infinity;
  for await (const block of got as AsyncIterable<Buffer>) {
    const size = fault.pieces ?? block.length;
    for (let start = 0; start < block.length; start += size) {
      const piece = block.subarray(start, Math.min(start + size, start + left));
      left -= piece.length;
      // Awaited, or the pieces would be put together again.
      await new Promise((done) => answer.write(piece, done));
      if (left <= 0) {
        answer.destroy();
        return;
      }
    }
  }
  answer.end();
}
