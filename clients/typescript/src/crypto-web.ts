/** Web Crypto of browsers, Deno and Workers. */
export const crypto = globalThis.crypto;
