// ctx.toRequest(): converts a request to a Request of the Fetch API.

import type { HttpRequest } from '../../../../api/index.js';

/** `signal`: aborted when the request ends. Rejects if the Fetch API does not accept the URL, or if the body cannot be read. */
export async function toRequest(request: HttpRequest, signal: AbortSignal): Promise<Request> {
  const { host, method, path, scheme } = request;
  const headers = [...request.headers].map(([name, value]): [string, string] => [name, latin1(value)]);
  // The Fetch API gives these no body.
  const hasBody = request.hasBody && method !== 'GET' && method !== 'HEAD';
  const body = hasBody ? new Uint8Array(await request.bytes()) : null;
  return new Request(new URL(path, `${scheme}://${host}`), { method, headers, body, signal });
}

/** The Fetch API has one character for each byte of a value. */
function latin1(value: string): string {
  return Buffer.from(value).toString('latin1');
}
