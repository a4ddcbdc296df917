// Fields that belong to one connection or one body: a service neither gets nor changes them.

const FRAMING: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** `name` is in lower case. */
export function isFraming(name: string): boolean {
  return FRAMING.has(name);
}
