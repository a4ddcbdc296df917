// The messages between the primary and the reading thread; plain data.

import type { Reach } from '../../config/checks/services/config-sources.js';
import type { FeatureKeys, FeatureNotes } from '../../config/feature-use.js';
import type { LoadCounts } from '../../config/load/load.js';
import type { RegexLimits } from '../../config/regex-limits.js';
import type { UnknownFields } from '../../config/schema/decode.js';
import type { SensitiveValue } from '../../config/schema/sensitive.js';
import type { Problem } from '../../config/text/problem.js';
import type { EncodedResource, FileFault } from '../resource-reader.js';
import type { Parcel } from './parcel.js';

/** Settings for everything that a process reads. */
export interface ReadingSettings {
  /** --reject-unknown-dynamic-fields, --ignore-unknown-dynamic-fields. */
  readonly unknownFields: UnknownFields;
  /** Which deprecated and unfinished fields are reported. */
  readonly features: FeatureNotes;
  readonly featureKeys: FeatureKeys;
  readonly regexLimits: RegexLimits;
  /** `<category>/<name>` of extensions that may not be used. */
  readonly disabledExtensions: readonly string[];
  /** What config sources in resources may refer to. */
  readonly reach: Reach;
}

/** A task of the thread. `message`: full name of the message of the resources or of the value. */
export type ReadingTask =
  | { readonly kind: 'resources'; readonly message: string; readonly encoded: readonly EncodedResource[] }
  | { readonly kind: 'file'; readonly message: string; readonly path: string }
  | { readonly kind: 'text'; readonly message: string; readonly json: Uint8Array; readonly name: string }
  | { readonly kind: 'encode'; readonly message: string; readonly value: object };

/** The results by kind of task. */
export interface ReadingResults {
  readonly resources: ReadingResult;
  readonly file: FileResult;
  readonly text: FileResult;
  readonly encode: Uint8Array;
}

export interface ReadingResult {
  /** One per resource, in order. */
  readonly items: readonly ReadItem[];
  readonly warnings: readonly Problem[];
  readonly counts: LoadCounts;
}

/** Not usable: unreadable, or invalid contents. */
export type FileResult =
  | (ReadingResult & { readonly version: string; readonly refusal?: undefined })
  | { readonly refusal: { readonly fault: FileFault; readonly details: string } };

export type ReadItem = UsableItem | RefusedItem | AliveItem;

export interface UsableItem {
  readonly kind: 'usable';
  readonly name: string;
  /** '' when it has none. */
  readonly version: string;
  readonly aliases: readonly string[];
  readonly message: Parcel;
  readonly sensitive: readonly SensitiveValue[];
  /** Undefined: no TTL. */
  readonly ttlMs: number | undefined;
}

export interface RefusedItem {
  readonly kind: 'refused';
  readonly name: string;
  readonly version: string;
  readonly details: string;
  /** Redacted. */
  readonly message: Parcel | undefined;
}

/** A heartbeat: restarts the TTL of a known resource. */
export interface AliveItem {
  readonly kind: 'alive';
  readonly name: string;
  readonly ttlMs: number;
}
