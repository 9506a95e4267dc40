/** Client of a memory server for WhatsApp assistants: typed calls, which are repeated safely. */
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./schema.js";
import { events } from "./events.js";
import {
  type Answered,
  asFailure,
  backoff,
  type ClientOptions,
  failure,
  MemoryServerError,
  newKey,
  pause,
  repeated,
  result,
} from "./transport.js";

export { type ClientOptions, MemoryServerError, result } from "./transport.js";
export { verifyWebhook, type WebhookEvent, WebhookVerificationError } from "./webhook.js";
export type { paths };
/** What goes in and comes out, by the names of the server's schema. */
export type Schemas = components["schemas"];

export interface CallOptions {
  /** Your own key: a program that runs again repeats nothing. Default: a new one for each call. */
  idempotencyKey?: string;
  /** Ends the call. A message that the server has accepted is answered all the same. */
  signal?: AbortSignal;
}

/** An event of `chatStream`. `done` has the whole answer, with its `outcome`. */
export type ChatEvent =
  | ({ event: "accepted" } & Pick<Schemas["ChatAnswer"], "session_id" | "message_id" | "turn_id">)
  | { event: "delta"; text: string }
  | { event: "done"; answer: Schemas["ChatAnswer"] };

type Page<T> = { results: T[]; next_cursor?: string | null };
type Listing<T> = { get: { responses: { 200: { content: { "application/json": Page<T> } } } } };
/** The addresses that answer in pages. */
export type ListPath = {
  [P in keyof paths]: paths[P] extends Listing<unknown> ? P : never;
}[keyof paths];
export type ListItem<P extends ListPath> = paths[P] extends Listing<infer T> ? T : never;
export type ListParams<P extends ListPath> = Pick<
  paths[P]["get"] extends { parameters: infer Q } ? Q : never,
  Extract<"path" | "query", keyof (paths[P]["get"] extends { parameters: infer Q } ? Q : never)>
>;

export class MemoryClient {
  /** Every operation of the server, typed by its schema; see `result`. */
  readonly api: Client<paths>;
  readonly #options: Required<ClientOptions>;

  constructor(options: ClientOptions) {
    this.#options = {
      ...options,
      retries: options.retries ?? 4,
      timeout: options.timeout ?? 120_000,
      maxWait: options.maxWait ?? 60_000,
      fetch: options.fetch ?? ((...call) => globalThis.fetch(...call)),
    };
    this.api = createClient<paths>({
      baseUrl: options.baseUrl.replace(/(\/api\/v1)?\/*$/, ""),
      headers: { Authorization: `Bearer ${options.token.trim()}` },
      // A redirect would turn a POST into a GET.
      redirect: "manual",
      fetch: (request) => repeated(request, this.#options),
    });
  }

  /** Store a fact. `outcome` says whether it is new. */
  remember(
    memory: Schemas["NewMemoryRequest"],
    options?: CallOptions,
  ): Promise<Schemas["StoredMemory"]> {
    return result(this.api.POST("/api/v1/memories/", { body: memory, ...sent(options) }));
  }

  /** Retrieve memories and messages that are relevant to a question, best first. */
  recall(
    question: Schemas["RecallRequest"],
    options?: CallOptions,
  ): Promise<Schemas["RecallAnswer"]> {
    return result(this.api.POST("/api/v1/memories/recall/", { body: question, ...sent(options) }));
  }

  /** Forget a memory, with every copy of it. */
  forget(memory_id: string, options?: CallOptions): Promise<Schemas["Receipt"]> {
    const init = { params: { path: { memory_id } }, ...sent(options) };
    return result(this.api.DELETE("/api/v1/memories/{memory_id}/", init));
  }

  /** Forget a session with its messages. */
  forgetSession(session_id: string, options?: CallOptions): Promise<Schemas["Receipt"]> {
    const init = { params: { path: { session_id } }, ...sent(options) };
    return result(this.api.DELETE("/api/v1/sessions/{session_id}/", init));
  }

  /** Erase a person or group with everything in the chat. */
  eraseChat(whatsapp_chat: string, options?: CallOptions): Promise<Schemas["Receipt"]> {
    const init = { params: { path: { whatsapp_chat } }, ...sent(options) };
    return result(this.api.DELETE("/api/v1/chats/{whatsapp_chat}/", init));
  }

  /** Return the active session of a chat, opened if there is none. */
  openSession(whatsapp_chat: string, options?: CallOptions): Promise<Schemas["Session"]> {
    return result(
      this.api.POST("/api/v1/sessions/", { body: { whatsapp_chat }, ...sent(options) }),
    );
  }

  /** Return the messages to send to a model of your own. */
  context(
    session_id: string,
    question: Schemas["ContextQuestionRequest"] = {},
    options?: CallOptions,
  ): Promise<Schemas["Context"]> {
    const init = { params: { path: { session_id } }, body: question, ...sent(options) };
    return result(this.api.POST("/api/v1/sessions/{session_id}/context/", init));
  }

  /** Store messages, all or none; with `learn: true` facts are learned from them. */
  storeMessages(
    session_id: string,
    messages: Schemas["NewMessagesRequest"],
    options?: CallOptions,
  ): Promise<Schemas["StoredMessages"]> {
    const init = { params: { path: { session_id } }, body: messages, ...sent(options) };
    return result(this.api.POST("/api/v1/sessions/{session_id}/messages/", init));
  }

  /** Store a question with the answer of your own model, as one turn. */
  exchange(
    session_id: string,
    exchange: Schemas["NewExchangeRequest"],
    options?: CallOptions,
  ): Promise<Schemas["StoredExchange"]> {
    const init = { params: { path: { session_id } }, body: exchange, ...sent(options) };
    return result(this.api.POST("/api/v1/sessions/{session_id}/exchanges/", init));
  }

  /** Say something in a chat and wait for the answer. */
  chat(
    said: Omit<Schemas["AskRequest"], "stream">,
    options?: CallOptions,
  ): Promise<Schemas["ChatAnswer"]> {
    return result(this.api.POST("/api/v1/chat/", { body: said, ...sent(options) })) as Promise<
      Schemas["ChatAnswer"]
    >;
  }

  /** Say something in a chat and get the answer as it comes; a stream that is cut off goes on. */
  async *chatStream(
    said: Omit<Schemas["AskRequest"], "stream">,
    options: CallOptions = {},
  ): AsyncGenerator<ChatEvent, void, undefined> {
    const keyed = { ...options, idempotencyKey: options.idempotencyKey ?? newKey() };
    let accepted = false;
    let told = "";
    for (let attempt = 0; ; attempt++) {
      // A stream that goes on repeats the reply from its beginning.
      let text = "";
      try {
        for await (const { event, data } of this.#events(said, keyed)) {
          if (event === "accepted" && !accepted) {
            accepted = true;
            yield { event, ...data };
          } else if (event === "delta") {
            text += data.text;
            if (text.length > told.length) {
              const news = text.slice(told.length);
              told = text;
              yield { event, text: news };
            }
          } else if (event === "done") {
            yield { event, answer: data };
            return;
          } else if (event === "error") {
            throw new MemoryServerError(data.errors);
          }
        }
        throw failure("cut_off", "The stream ended before the answer.");
      } catch (error) {
        if (options.signal?.aborted) throw error;
        const isFinal = error instanceof MemoryServerError && error.code !== "cut_off";
        if (isFinal || attempt >= this.#options.retries) throw asFailure(error);
      }
      await pause(backoff(attempt), options.signal);
    }
  }

  async *#events(said: object, options: CallOptions) {
    const body = { ...said, stream: true } as Schemas["AskRequest"];
    const init = { ...sent(options), body, parseAs: "stream" as const };
    yield* events(await result(this.api.POST("/api/v1/chat/", init)), this.#options.timeout);
  }

  /** Go through all pages of a list: `list("/api/v1/memories/", { query: { type: "fact" } })`. */
  async *list<P extends ListPath>(
    path: P,
    params?: ListParams<P>,
    options: Pick<CallOptions, "signal"> = {},
  ): AsyncGenerator<ListItem<P>, void, undefined> {
    const get = this.api.GET as (path: P, init: object) => Promise<Answered<Page<ListItem<P>>>>;
    let query: object = { ...(params as { query?: object } | undefined)?.query };
    for (;;) {
      const page = await result(get(path, { params: { ...params, query }, ...options }));
      yield* page.results;
      if (!page.next_cursor) return;
      query = { ...query, cursor: page.next_cursor };
    }
  }
}

/** Return what every call of this client sends besides its body and address. */
function sent({ idempotencyKey, signal }: CallOptions = {}) {
  return { headers: { "Idempotency-Key": idempotencyKey }, signal };
}
