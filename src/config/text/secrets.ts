// What of a configuration text is not to be shown: values below the names that the API marks as sensitive, whatever else is
// wrong with the text, and however the names are mistyped.

import type { Alias, Document, Node, Pair, visit } from 'yaml';
import { nearest } from '../../common/text/suggest.js';
import type { Range } from './excerpt.js';

/**
 * Fields of the API that are sensitive. Of those with a name that others have as well (`keys`, `secrets`, `typed_config`) it is the field
 * that holds them.
 */
export const SENSITIVE_NAMES: readonly string[] = [
  'auth_password',
  'auth_username',
  'backend_token',
  'context_extensions',
  'credentials',
  'credentials_data_source',
  'downstream_auth_password',
  'downstream_auth_passwords',
  'downstream_auth_username',
  'generic_secret',
  'password',
  'pkcs12',
  'private_key',
  'private_key_provider',
  'secret',
  'secret_access_key',
  'secret_data',
  'session_ticket_keys',
  'session_token',
  'users',
  'web_identity_token_data_source',
];

/** What says where a secret is, and not what it is. */
const SHOWN = new Set(['@type', 'environment_variable', 'filename', 'name', 'path']);

/** Names that look like a sensitive one and are others. */
const OTHERS = new Set(['secrets', 'user']);

/** What reading needs of the YAML library. */
export interface YamlVisitor {
  readonly visit: typeof visit & { readonly SKIP: symbol };
}

/** Where the sensitive values of a document stand in its text. */
export function secretRanges({ visit }: YamlVisitor, document: Document): readonly Range[] {
  const ranges: Range[] = [];
  const take = (node: unknown): void => {
    visit(node as Node, {
      Pair: (_key, pair) => (SHOWN.has(nameOf(pair)) ? visit.SKIP : undefined),
      Scalar: (key, { range }) => {
        if (key !== 'key' && range) ranges.push({ from: range[0], to: range[1] });
      },
      Alias: (_key, alias: Alias) => take(alias.resolve(document)),
    });
  };
  visit(document, {
    Pair: (_key, pair) => {
      if (!mayBeSensitive(nameOf(pair))) return undefined;
      take(pair.value);
      return visit.SKIP;
    },
  });
  return ranges;
}

/** Whether a text that cannot be read has such names: what stands behind them cannot be told then. */
export function mayHoldSecrets(text: string): boolean {
  const known = new Map<string, boolean>();
  for (const [, name] of text.matchAll(NAME)) {
    if (!known.has(name!)) known.set(name!, mayBeSensitive(name!));
    if (known.get(name!)) return true;
  }
  return false;
}

/** What could be a key; in a text protobuf a message follows without a colon. */
const NAME = /([A-Za-z][\w-]{3,40})["']?[ \t]*[:{<]/g;

function mayBeSensitive(name: string): boolean {
  return !OTHERS.has(name) && nearest(name, SENSITIVE_NAMES) !== undefined;
}

function nameOf({ key }: Pair): string {
  return String((key as { readonly value?: unknown } | null)?.value ?? '');
}
