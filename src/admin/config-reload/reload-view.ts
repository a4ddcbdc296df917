// The result of a configuration reload, as POST /config/reload shows it.

import type { Problem } from '../../config/text/problem.js';

/** A field that differs. Sensitive values are redacted. */
export interface FieldChange {
  /** Path from the top of the configuration that contains the field: the new one, or the old one if only that has it. */
  readonly path: string;
  /** Canonical proto JSON; undefined if the field is absent. */
  readonly before: unknown;
  readonly after: unknown;
}

/** In the order of listing. */
export const RESOURCE_KINDS = ['cluster', 'listener', 'route configuration', 'runtime layer'] as const;

export type ResourceKind = (typeof RESOURCE_KINDS)[number];

/** A named resource that was added, changed or removed. */
export interface ResourceChange {
  readonly kind: ResourceKind;
  readonly name: string;
  readonly change: 'added' | 'changed' | 'removed';
  /** Only for changed resources; the first ones if there are very many. */
  readonly fields: readonly FieldChange[];
  /** Number of fields that differ. */
  readonly fieldCount: number;
}

/** The differences between two configurations. */
export interface ConfigDifference {
  readonly changes: readonly ResourceChange[];
  readonly unchanged: Readonly<Record<ResourceKind, number>>;
  /** Differences that require a restart. */
  readonly restart: readonly FieldChange[];
}

export interface ReloadRequest {
  /** Whether to apply changes; otherwise it is a dry run. */
  readonly applies: boolean;
  /** Apply what is possible even if other changes require a restart. */
  readonly isPartial: boolean;
  /** Nothing has changed since the last attempt: its reason for failing is not logged again. */
  readonly isRepeated?: boolean;
}

export type ReloadView =
  /** Another reload is in progress. */
  | { readonly outcome: 'busy' }
  /** The configuration is refused. */
  | { readonly outcome: 'invalid'; readonly errors: readonly Problem[]; readonly warnings: readonly Problem[] }
  /** The configuration cannot be read at the moment: no thread is available, or the system refuses access to the file. */
  | { readonly outcome: 'unread'; readonly why: string }
  | {
      readonly outcome: /** A dry run: the configuration can be applied. */
        | 'possible'
        | 'applied'
        /** Not applied, because a part requires a restart. */
        | 'needs-restart';
      readonly difference: ConfigDifference;
      readonly warnings: readonly Problem[];
    }
  /** It could not be applied. */
  | {
      readonly outcome: 'failed';
      readonly why: string;
      /** Everything is as before; otherwise undoing failed too. */
      readonly isUndone: boolean;
      /** Another process is taking over from this one, and has read or will read the configuration itself. */
      readonly isTakenOver: boolean;
      readonly difference: ConfigDifference;
      readonly warnings: readonly Problem[];
    };
