/** Webhooks of the server, signed by Standard Webhooks. */
import { crypto } from "#crypto";

/** An event that the server posted. `id` stays the same when it is posted again. */
export interface WebhookEvent {
  id: string;
  type: string;
  timestamp: string;
  data: { whatsapp_chat: string | null; [name: string]: unknown };
}

/** Thrown by verifyWebhook: answer with 401. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}

/** Return the event of a webhook whose signature is right, by Standard Webhooks.
 *
 * `body`: as it was received, before it is parsed. `secret`: `whsec_…`, or several of them.
 * `toleranceSeconds`: how far its time may be from now. Throws WebhookVerificationError.
 */
export async function verifyWebhook(
  body: string | Uint8Array | ArrayBuffer,
  headers: Iterable<[string, string]> | Record<string, string | readonly string[] | undefined>,
  secret: string | readonly string[],
  { toleranceSeconds = 300 }: { toleranceSeconds?: number } = {},
): Promise<WebhookEvent> {
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  const given = new Map(
    pairs.map(([name, value]) => [name.toLowerCase(), [value].flat().join(" ")]),
  );
  const [id, sentAt, signatures] = ["id", "timestamp", "signature"].map(
    (name) => given.get(`webhook-${name}`) ?? "",
  ) as [string, string, string];
  if (!id || !/^\d{1,12}$/.test(sentAt) || !signatures) {
    throw new WebhookVerificationError("The headers of a webhook are missing.");
  }
  if (!(Math.abs(Date.now() / 1000 - Number(sentAt)) <= toleranceSeconds)) {
    throw new WebhookVerificationError("It was sent too long ago, or in the future.");
  }
  const content = typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
  const head = new TextEncoder().encode(`${id}.${sentAt}.`);
  const signed = new Uint8Array(head.length + content.length);
  signed.set(head);
  signed.set(content, head.length);
  const proofs = signatures.split(" ").filter((each) => each.startsWith("v1,"));
  for (const each of typeof secret === "string" ? [secret] : secret) {
    const key = await hmacKey(each);
    for (const proof of proofs) {
      // verify() compares in constant time.
      if (await crypto.subtle.verify("HMAC", key, decoded(proof.slice(3)), signed)) {
        return { ...JSON.parse(new TextDecoder().decode(content)), id };
      }
    }
  }
  throw new WebhookVerificationError("No signature is right.");
}

function hmacKey(secret: string): Promise<CryptoKey> {
  const bytes = decoded(secret.trim().replace(/^whsec_/, ""));
  if (!bytes.length) throw new TypeError("A webhook's secret is whsec_ and base64.");
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [
    "verify",
  ]);
}

/** Return the bytes of base64; none if it isn't. */
function decoded(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
