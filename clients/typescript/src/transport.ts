/** How a call gets its answer, or its error: sent again under one key until there is one. */
import { crypto } from "#crypto";
import type { components } from "./schema.js";

type ApiError = components["schemas"]["ApiError"];

export interface ClientOptions {
  /** Address of the server, such as `https://memory.example.com`. */
  baseUrl: string;
  /** Made by `manage.py create_api_token`. */
  token: string;
  /** How often a call is repeated that failed on its way or was put off. Default: 4. */
  retries?: number;
  /** Milliseconds that one try may take; of a stream, the longest silence. Default: 120,000. */
  timeout?: number;
  /** The longest wait, in milliseconds, that the server may ask for. Default: 60,000. */
  maxWait?: number;
  /** Used instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

export interface Answered<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** A call that was refused or could not be made. */
export class MemoryServerError extends Error {
  override readonly name = "MemoryServerError";
  /** What the server names the error, such as `memory_disabled`; `unreachable`, `timeout`,
   * `cut_off` or `unreadable` if there is no answer of the server, `http_502` if it has no name. */
  readonly code: string;
  /** All errors, each with the field that it is about. */
  readonly errors: readonly ApiError[];
  /** HTTP status; 0: there was no answer. */
  readonly status: number;
  /** Names the call in the server's log. */
  readonly requestId: string | null;
  /** Seconds after which the server wants to be asked again. */
  readonly retryAfter: number | null;

  constructor(errors: readonly ApiError[], response?: Response, cause?: unknown) {
    super(errors.map((each) => (each.attr ? `${each.attr}: ` : "") + each.detail).join(" "), {
      cause,
    });
    this.errors = errors;
    this.code = errors[0]?.code ?? "error";
    this.status = response?.status ?? 0;
    this.requestId = response?.headers.get("X-Request-ID") ?? null;
    const wait = response && waitAskedFor(response);
    this.retryAfter = wait === undefined ? null : wait / 1000;
  }
}

/** Return what a call of `client.api` answers; throw MemoryServerError where it was refused. */
export async function result<T>(call: Promise<Answered<T>>): Promise<T> {
  let answer: Answered<T>;
  try {
    answer = await call;
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw failure("unreadable", "The answer is no JSON: is baseUrl right?", error);
    }
    throw error;
  }
  if (answer.response.ok) return answer.data as T;
  throw refusal(answer.error, answer.response);
}

/** Send a request until it has an answer, under one key: the server does nothing twice. */
export async function repeated(
  request: Request,
  options: Required<ClientOptions>,
): Promise<Response> {
  if (request.method !== "GET" && !request.headers.has("Idempotency-Key")) {
    request.headers.set("Idempotency-Key", newKey());
  }
  // A conditional PUT has no key, and a second one would be refused because of the first.
  const isOnce = request.method === "PUT" && /if-(none-)?match/.test([...request.headers].join());
  for (let attempt = 0; ; attempt++) {
    const isLast = isOnce || attempt >= options.retries;
    let wait = backoff(attempt);
    try {
      const response = await tried(isLast ? request : request.clone(), options);
      if (isLast || !(await isPutOff(response))) return response;
      wait = waitAskedFor(response) ?? wait;
      if (wait > options.maxWait) return response;
    } catch (error) {
      if (request.signal.aborted) throw error;
      if (isLast) throw asFailure(error);
    }
    await pause(wait, request.signal);
  }
}

/** Return a key that no other call has. Pages without TLS have no randomUUID(). */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Send a request once. The answer is whole, but for files and streams, which are read later. */
async function tried(request: Request, options: Required<ClientOptions>): Promise<Response> {
  const ending = new AbortController();
  const stop = () => ending.abort(request.signal.reason);
  if (request.signal.aborted) stop();
  request.signal.addEventListener("abort", stop);
  const late = new DOMException("The server did not answer in time.", "TimeoutError");
  const timer = setTimeout(() => ending.abort(late), options.timeout);
  try {
    const response = await options.fetch(request, { signal: ending.signal });
    const isJson = /^application\/json\b/i.test(response.headers.get("Content-Type") ?? "");
    const { status, statusText, headers } = response;
    if (!response.body || (response.ok && !isJson)) return response;
    return new Response(await response.arrayBuffer(), { status, statusText, headers });
  } finally {
    clearTimeout(timer);
  }
}

/** Return whether the same call may succeed a little later. */
async function isPutOff(response: Response): Promise<boolean> {
  if ([408, 429, 502, 503, 504].includes(response.status)) return true;
  return (
    response.status === 409 && (await response.clone().text()).includes("idempotency_in_progress")
  );
}

/** Return the milliseconds of Retry-After, which has seconds or a date. */
function waitAskedFor(response: Response): number | undefined {
  const given = response.headers.get("Retry-After");
  if (!given) return undefined;
  const wait = /^\d+$/.test(given) ? Number(given) * 1000 : Date.parse(given) - Date.now();
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}

export function backoff(attempt: number): number {
  return 500 * 2 ** attempt * (0.75 + Math.random() / 2);
}

export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
  });
}

export function failure(code: string, detail: string, cause?: unknown): MemoryServerError {
  return new MemoryServerError([{ code, detail, attr: null }], undefined, cause);
}

/** Return what `fetch` threw as an error of ours. */
export function asFailure(error: unknown): MemoryServerError {
  if (error instanceof MemoryServerError) return error;
  const { name, message, cause } = error as Error;
  if (name === "TimeoutError") return failure("timeout", message, error);
  // Node's own message is "fetch failed".
  const reason = (cause as Error | undefined)?.message || message;
  return failure("unreachable", `The server could not be reached: ${reason}`, error);
}

/** Return an error of the server's form, or of what a proxy in front of it says. */
function refusal(body: unknown, response: Response): MemoryServerError {
  const errors = (body as { errors?: ApiError[] } | undefined)?.errors;
  if (Array.isArray(errors) && errors.length) return new MemoryServerError(errors, response);
  const place = response.headers.get("Location");
  const text = (typeof body === "string" ? body : "")
    .replace(/<[^<>]*>/g, " ")
    .slice(0, 200)
    .trim();
  const detail = place ? `It has moved to ${place}: set baseUrl.` : text || response.statusText;
  return new MemoryServerError([{ code: `http_${response.status}`, detail, attr: null }], response);
}
