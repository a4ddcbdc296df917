// Parses a request target: a path, or a whole URL as proxies send it.

export interface Target {
  /** Path and query. */
  readonly path: string;
  /** Of a whole URL: it replaces the Host header (RFC 9112 §3.2.2). */
  readonly authority: string | undefined;
}

export function parseTarget(target: string): Target {
  const found = /^https?:\/\/([^/?]*)/i.exec(target);
  if (found === null) return { path: target, authority: undefined };
  const rest = target.slice(found[0].length);
  return { path: rest.startsWith('/') ? rest : `/${rest}`, authority: found[1]! };
}
