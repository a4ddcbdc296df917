// The inputs that the matcher of a UDP proxy may have: datagrams have addresses, and nothing else.

import type { Report } from '../../../sdk.js';

const NETWORK = 'envoy.extensions.matching.common_inputs.network.v3';

const INPUTS: ReadonlySet<string> = new Set(
  ['DestinationIPInput', 'DestinationPortInput', 'SourceIPInput', 'SourcePortInput'].map(
    (name) => `${NETWORK}.${name}`,
  ),
);

/** Reports inputs of connections and requests. `value`: a part of a matcher, at `path`. */
export function checkInputs(value: unknown, path: string, report: Report): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`;
    if (name === 'input') checkInput(inner, at, report);
    else checkInputs(inner, at, report);
  }
}

function checkInput(input: { typed_config?: { '@type'?: string } } | undefined, path: string, report: Report): void {
  const url = input?.typed_config?.['@type'];
  const type = url?.replace(/^.*\//, '');
  if (type === undefined || INPUTS.has(type)) return;
  report(`${path}.typed_config`, `'${type}' is not an input of datagrams: use their addresses and ports`);
}
