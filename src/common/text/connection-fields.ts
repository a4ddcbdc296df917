// Header fields that frame a message or belong to one connection (RFC 9110, 7.6.1; RFC 9112, 6). The sender of a new message
// sets them itself.

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
