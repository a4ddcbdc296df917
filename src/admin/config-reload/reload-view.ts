// What a reload of the configuration finds out and does, as POST /config/reload tells it.

import type { Problem } from '../../config/text/problem.js';

/** A field that differs. Sensitive values are redacted. */
export interface FieldChange {
  /** From the top of the configuration in which the field stands: of the new one, unless only the old one has it. */
  readonly path: string;
  /** Canonical proto JSON; undefined: the field is not there. */
  readonly before: unknown;
  readonly after: unknown;
}

/** In the order in which they are listed. */
export const RESOURCE_KINDS = ['cluster', 'listener', 'route configuration', 'runtime layer'] as const;

export type ResourceKind = (typeof RESOURCE_KINDS)[number];

/** Something with a name that is not as it was. */
export interface ResourceChange {
  readonly kind: ResourceKind;
  readonly name: string;
  readonly change: 'added' | 'changed' | 'removed';
  /** Only of what has changed; the first of them when there are very many. */
  readonly fields: readonly FieldChange[];
  /** How many fields differ. */
  readonly fieldCount: number;
}

/** How two configurations differ. */
export interface ConfigDifference {
  readonly changes: readonly ResourceChange[];
  readonly unchanged: Readonly<Record<ResourceKind, number>>;
  /** What only a process that starts anew can take. */
  readonly restart: readonly FieldChange[];
}

export interface ReloadRequest {
  /** Otherwise nothing is changed. */
  readonly applies: boolean;
  /** Applies what can be applied though other things need a restart. */
  readonly isPartial: boolean;
  /** Nothing has changed since the last one: the log does not say once more why it fails. */
  readonly isRepeated?: boolean;
}

export type ReloadView =
  /** Another one is under way. */
  | { readonly outcome: 'busy' }
  /** The configuration is refused. */
  | { readonly outcome: 'invalid'; readonly errors: readonly Problem[]; readonly warnings: readonly Problem[] }
  /** At the moment it cannot be read: there is no thread for it, or the system does not let it have the file. */
  | { readonly outcome: 'unread'; readonly why: string }
  | {
      readonly outcome: /** A dry run: it could be applied. */
        | 'possible'
        | 'applied'
        /** Not applied, because a part of it needs a restart. */
        | 'needs-restart';
      readonly difference: ConfigDifference;
      readonly warnings: readonly Problem[];
    }
  /** It could not be applied. */
  | {
      readonly outcome: 'failed';
      readonly why: string;
      /** Everything is as it was before; otherwise that failed too. */
      readonly isUndone: boolean;
      /** Another process takes over from this one: it has read the configuration itself, or will. */
      readonly isTakenOver: boolean;
      readonly difference: ConfigDifference;
      readonly warnings: readonly Problem[];
    };
