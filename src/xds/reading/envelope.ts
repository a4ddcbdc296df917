// The envelope of a file's resources: a DiscoveryResponse.

import { isRecord } from '../../common/records.js';
import { describe } from '../../config/schema/scalar.js';
import type { Path } from '../../config/text/path.js';
import { formatProblems } from '../../config/text/problem.js';
import type { Source } from '../../config/text/source.js';
import type { FileFault } from '../resource-reader.js';
import type { ResourceCheck } from './resource-check.js';

const RESPONSE = 'envoy.service.discovery.v3.DiscoveryResponse';

export class Envelope {
  readonly version: string;
  readonly resources: readonly unknown[];
  /** Why the whole file is refused. */
  readonly refusal: { readonly fault: FileFault; readonly details: string } | undefined;
  /** `resources` is a single element, which is permitted in place of a list. */
  readonly #isSingle: boolean;

  constructor(source: Source, check: ResourceCheck) {
    const { value } = source;
    const isMap = isRecord(value);
    const { resources = [], ...rest } = (isMap ? value : {}) as { readonly resources?: unknown };
    const { message, problems } = check.decode(RESPONSE, isMap ? rest : value, source, []);
    // A file being written is empty at first, and a field name may be mistyped: neither may remove everything. Binary forms
    // cannot express an empty list.
    const isText = () => source.locate([], 'value') !== undefined;
    if (!isMap ? value === null : Object.keys(value).length === 0) {
      problems.error([], "it is empty; where there are no resources, it says 'resources: []'");
    } else if (isMap && !('resources' in value) && isText()) {
      problems.error([], "it has no 'resources'; where there are none, it says 'resources: []'");
    }
    if (typeof resources !== 'object') {
      problems.error(['resources'], `expected a list, found ${describe(resources)}`);
    }
    this.version = String(message['version_info'] ?? '');
    this.#isSingle = isRecord(resources);
    this.resources = this.#isSingle ? [resources] : Array.isArray(resources) ? resources : [];
    const fault = isMap ? 'refused' : 'garbled';
    this.refusal = problems.errorCount === 0 ? undefined : { fault, details: formatProblems(problems.errors) };
  }

  /** Returns the path of a resource in the file. */
  pathOf(index: number): Path {
    return this.#isSingle ? ['resources'] : ['resources', index];
  }
}
