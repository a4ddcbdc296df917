// Which endpoint answers a request, and what is answered when none does. No I/O.

import { messageOf } from '../common/errors.js';
import { Level } from '../log/levels.js';
import { getLogger } from '../log/logger.js';
import { type AdminHandler, type AdminRequest, type AdminResponse, Refusal } from './admin-handler.js';
import type { AdminServices } from './admin-services.js';
import type { PathRule } from './allowed-paths.js';
import type { HandlerTable } from './handler-table.js';
import { helpText } from './help-text.js';
import { parseForm, parseQuery } from './query-parameters.js';

export type RawRequest = Pick<AdminRequest, 'method' | 'headers' | 'body'> & {
  /** The request target: path and query, or a whole URL. */
  readonly target: string;
};

const logger = getLogger('admin');

/** Answers every request; never throws. */
export async function answer(
  raw: RawRequest,
  handlers: HandlerTable,
  isAllowed: PathRule,
  services: AdminServices,
): Promise<AdminResponse> {
  const target = originForm(raw.target);
  const question = target.indexOf('?');
  const path = question < 0 ? target : target.slice(0, question);
  try {
    if (!isAllowed(target)) throw new Refusal(403, `request to path ${target} not allowed`);
    const handler = handlers.find(path);
    if (handler === undefined) throw new Refusal(404, `invalid path. ${helpText(handlers.sorted)}`);
    if (handler.mutates && raw.method !== 'POST') throw refusedMethod(handler, raw.method);
    const { method, headers, body } = raw;
    const query = question < 0 && isForm(raw) ? parseForm(body.toString()) : parseQuery(target.slice(path.length + 1));
    return await handler.handle({ method, path, query, headers, body, handlers: handlers.sorted }, services);
  } catch (error) {
    if (error instanceof Refusal) return { status: error.status, body: error.message };
    logger.exception(Level.Error, `admin path "${path}" failed`, error);
    return { status: 500, body: `${path} failed: ${messageOf(error)}\n` };
  }
}

function refusedMethod({ path }: AdminHandler, method: string): Refusal {
  logger.error(`admin path "${path}" mutates state, method=${method} rather than POST`);
  return new Refusal(400, `Method ${method} not allowed, POST required.`);
}

function isForm({ headers }: RawRequest): boolean {
  const type = headers['content-type'] ?? '';
  return type.split(';', 1)[0]!.trim().toLowerCase() === 'application/x-www-form-urlencoded';
}

/** Proxies send whole URLs (RFC 9112 §3.2.2). */
function originForm(target: string): string {
  const authority = /^https?:\/\/[^/?]*/i.exec(target);
  if (authority === null) return target;
  const rest = target.slice(authority[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}
