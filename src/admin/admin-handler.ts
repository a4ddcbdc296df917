// The interface of endpoints: the row in /help and the function that handles requests. Each endpoint is a file below
// handlers/.

import type { IncomingHttpHeaders } from 'node:http';
import type { AdminServices } from './admin-services.js';
import type { QueryParameters } from './http/messages/query-parameters.js';

export interface AdminParameter {
  readonly name: string;
  readonly help: string;
  /** The allowed values. */
  readonly choices?: readonly string[];
  /** Only its presence counts, not its value: a form shows a checkbox. */
  readonly isFlag?: boolean;
  /** The initial choice of a form; default: the first one. */
  readonly preset?: string;
}

export interface AdminHandler {
  /** The full path, matched exactly. */
  readonly path: string;
  /** Additional paths, matched exactly, and not listed. */
  readonly aliases?: readonly string[];
  /** Part of another endpoint's page: not in /help and not on the home page. */
  readonly isUnlisted?: boolean;
  /** Changes something: only POST is allowed. */
  readonly mutates: boolean;
  /**
   * Cheap, and handled immediately. Other requests, which may be costly and numerous, are handled one per turn of the loop.
   */
  readonly isUrgent?: boolean;
  readonly help: string;
  /** The parameters that /help lists; a handler may read others. */
  readonly parameters: readonly AdminParameter[];
  /** Handles a request. A thrown Refusal is the answer; any other exception becomes a 500. */
  handle(request: AdminRequest, services: AdminServices): AdminResponse | Promise<AdminResponse>;
}

export interface AdminRequest {
  readonly method: string;
  /** As requested, without the query; an alias is kept. */
  readonly path: string;
  /** Parameters of the URL, or of the form if the URL has none. */
  readonly query: QueryParameters;
  readonly headers: IncomingHttpHeaders;
  /** The complete body. */
  readonly body: Buffer;
  /** All listed endpoints, sorted by path. */
  readonly handlers: readonly AdminHandler[];
}

/** A long body, produced as the client reads it. Its return() is called when the client disconnects early. */
export type Pieces = (Iterable<Uint8Array> | AsyncIterable<Uint8Array>) & {
  /** Sets a listener that is called when the body is cut off and the client must not be waited for. */
  whenCut?(listener: () => void): void;
};

export interface AdminResponse {
  /** Default: 200. */
  readonly status?: number;
  /** Default: plain text. */
  readonly contentType?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly body: string | Uint8Array | Pieces;
  /** The body continues until the client disconnects. */
  readonly isEndless?: boolean;
}

/** The answer of mutating endpoints. */
export const OK: AdminResponse = { body: 'OK\n' };

/** A request that an endpoint refuses. */
export class Refusal extends Error {
  readonly status: number;

  /** `text`: the complete body. */
  constructor(status: number, text: string) {
    super(text);
    this.name = 'Refusal';
    this.status = status;
  }
}
