// Names of header fields that say where a message ends, or that belong to its connection (RFC 9110, 7.6.1; RFC 9112, 6): whoever sends
// a message of its own sets them itself.

export const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
  'expect',
]);
