// Finds the endpoint for a request and returns its answer, or an error answer. No I/O.

import { BatonError, messageOf } from '../../common/errors/errors.js';
import { inTurns } from '../../common/time/next-turn.js';
import { getLogger } from '../../log/logger.js';
import { type AdminHandler, type AdminRequest, type AdminResponse, Refusal } from '../admin-handler.js';
import type { AdminServices } from '../admin-services.js';
import type { HandlerTable } from '../handler-table.js';
import { helpText } from '../help-text.js';
import { EndingError, NoSlotError } from '../render/body-slots.js';
import type { PathRule } from './allowed-paths.js';
import { parseForm, parseQuery } from './messages/query-parameters.js';
import { foreignSite, type HostRule } from './request-guards.js';
import { nextPieceTurn, nextRequestTurn } from './turns.js';

export type RawRequest = Pick<AdminRequest, 'method' | 'headers' | 'body'> & {
  /** Path and query. */
  readonly target: string;
  /** Address of the client; '' for a Unix socket. */
  readonly peer: string;
  /** Returns whether the client has disconnected or has reset the request. */
  readonly isGone: () => boolean;
};

/** Which requests are allowed. */
export interface AccessRules {
  readonly isAllowedPath: PathRule;
  readonly isAllowedHost: HostRule;
}

const logger = getLogger('admin');
/** Maximum length of a target in messages. */
const MAX_SHOWN_LENGTH = 200;

/**
 * Answers every request; never rejects. Logs requests that change something. Resolves with undefined, without an effect, if
 * the client has disconnected before the request's turn.
 */
export async function answer(
  raw: RawRequest,
  handlers: HandlerTable,
  rules: AccessRules,
  services: AdminServices,
): Promise<AdminResponse | undefined> {
  const { target } = raw;
  const question = target.indexOf('?');
  const path = question < 0 ? target : target.slice(0, question);
  const handler = handlers.find(path);
  let response: AdminResponse;
  try {
    if (!rules.isAllowedHost(raw.headers.host)) throw refusedHost(raw.headers.host);
    if (!rules.isAllowedPath(target)) throw new Refusal(403, `request to path ${target} not allowed`);
    if (handler === undefined) throw new Refusal(404, `invalid path. ${helpText(handlers.sorted)}`);
    if (handler.mutates) checkMutation(handler, raw);
    if (handler.isUrgent !== true) {
      await nextRequestTurn();
      if (raw.isGone()) return undefined;
    }
    const { method, headers, body } = raw;
    const inUrl = parseQuery(target.slice(path.length + 1));
    const query = inUrl.isEmpty && isForm(raw) ? await inTurns(parseForm(body.toString()), nextPieceTurn) : inUrl;
    response = await handler.handle({ method, path, query, headers, body, handlers: handlers.sorted }, services);
    // After the answer, the change is effective on every worker.
    if (handler.mutates) await services.workersUpdated();
  } catch (error) {
    response = answerOf(error, path);
  }
  if (handler?.mutates && raw.method === 'POST') {
    logger.info(
      `admin: ${raw.peer || 'a client on a Unix socket'} sent POST ${target.slice(0, MAX_SHOWN_LENGTH)}: ${response.status ?? 200}`,
    );
  }
  return response;
}

function answerOf(error: unknown, path: string): AdminResponse {
  if (error instanceof Refusal) return { status: error.status, body: error.message };
  if (error instanceof NoSlotError || error instanceof EndingError) return { status: 503, body: `${error.message}\n` };
  if (error instanceof BatonError && error.code !== 'INTERNAL') {
    // The operator can fix this: a stack trace would not help.
    logger.error(`admin path "${path}" failed: ${error.describe()}`);
    return { status: 500, body: `${path} failed: ${error.describe()}\n` };
  }
  logger.error({ err: error }, `admin path "${path}" failed`);
  return { status: 500, body: `${path} failed: ${messageOf(error)}\n` };
}

/** Throws a Refusal for a request that must not change anything. */
function checkMutation(handler: AdminHandler, { method, headers }: RawRequest): void {
  if (method !== 'POST') throw refusedMethod(handler, method);
  const site = foreignSite(headers);
  if (site === undefined) return;
  const text = `A web page of another site (${site.slice(0, MAX_SHOWN_LENGTH)}) may not send POST ${handler.path}.\n`;
  throw new Refusal(403, text);
}

function refusedHost(host: string | undefined): Refusal {
  const subject = host === undefined ? 'A request without Host' : `The host ${host.slice(0, MAX_SHOWN_LENGTH)}`;
  return new Refusal(403, `${subject} is not allowed: see --admin-allowed-hosts.\n`);
}

function refusedMethod({ path }: AdminHandler, method: string): Refusal {
  logger.error(`admin path "${path}" mutates state, method=${method} rather than POST`);
  return new Refusal(400, `Method ${method} not allowed, POST required.`);
}

function isForm({ headers }: RawRequest): boolean {
  const type = headers['content-type'] ?? '';
  return type.split(';', 1)[0]!.trim().toLowerCase() === 'application/x-www-form-urlencoded';
}
