/** Web Crypto of Node, which is no global before Node 19. */
// @ts-expect-error The types of Node are left out, so that no other file uses what only Node has.
import { webcrypto } from "node:crypto";

export const crypto: Crypto = webcrypto;
