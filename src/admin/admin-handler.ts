// What an endpoint is: its row in /help and the function that answers it. Each lies in a file under handlers/.

import type { IncomingHttpHeaders } from 'node:http';
import type { AdminServices } from './admin-services.js';
import type { QueryParameters } from './http/messages/query-parameters.js';

export interface AdminParameter {
  readonly name: string;
  readonly help: string;
  /** The values it knows. */
  readonly choices?: readonly string[];
  /** Its presence counts and not its value: a form has a checkbox for it. */
  readonly isFlag?: boolean;
  /** The choice that a form begins with; the first one when left out. */
  readonly preset?: string;
}

export interface AdminHandler {
  /** The whole path, matched exactly. */
  readonly path: string;
  /** Further paths that name it, matched exactly as well, but listed nowhere. */
  readonly aliases?: readonly string[];
  /** Part of another endpoint's page: /help and the home page leave it out. */
  readonly isUnlisted?: boolean;
  /** Changes something: only POST is let through. */
  readonly mutates: boolean;
  /** Cheap, and answered at once: other requests, which may be costly and many, are handled one a turn of the loop. */
  readonly isUrgent?: boolean;
  readonly help: string;
  /** What /help lists; a handler may read others. */
  readonly parameters: readonly AdminParameter[];
  /** Answers a request. A Refusal that it throws is the answer; whatever else it throws becomes a 500. */
  handle(request: AdminRequest, services: AdminServices): AdminResponse | Promise<AdminResponse>;
}

export interface AdminRequest {
  readonly method: string;
  /** As it was asked for, without the query: an alias stays one. */
  readonly path: string;
  /** Of the URL, or of the form when the URL has none. */
  readonly query: QueryParameters;
  readonly headers: IncomingHttpHeaders;
  /** Whole. */
  readonly body: Buffer;
  /** All listed endpoints in the order of their paths. */
  readonly handlers: readonly AdminHandler[];
}

/** A long body, made as the client takes it. Its return() is called when the client leaves early. */
export type Pieces = (Iterable<Uint8Array> | AsyncIterable<Uint8Array>) & {
  /** `listener` is called when no more of it will come, and the client is not to be waited for. */
  whenCut?(listener: () => void): void;
};

export interface AdminResponse {
  /** 200 when left out. */
  readonly status?: number;
  /** Plain text when left out. */
  readonly contentType?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly body: string | Uint8Array | Pieces;
  /** The body goes on until its client leaves. */
  readonly isEndless?: boolean;
}

/** What mutating endpoints answer. */
export const OK: AdminResponse = { body: 'OK\n' };

/** A request that an endpoint does not take. */
export class Refusal extends Error {
  readonly status: number;

  /** `text` is the whole body. */
  constructor(status: number, text: string) {
    super(text);
    this.name = 'Refusal';
    this.status = status;
  }
}
