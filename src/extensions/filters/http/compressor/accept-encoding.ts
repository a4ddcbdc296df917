// Chooses the content coding of a response from its request's accept-encoding, as Envoy does.

import { decimalOf } from '../../../sdk.js';

/** How a choice came about, for stats. */
export const enum Choice {
  /** accept-encoding names the coding. */
  Named,
  Wildcard,
  Identity,
  /** No coding of the chain is acceptable, or the header is not valid. */
  None,
}

export interface ChosenEncoding {
  readonly encoding: string;
  readonly choice: Choice;
}

/** A compressor of the chain. */
export interface OfferedEncoding {
  readonly encoding: string;
  /** It is chosen before codings that the client likes equally and names earlier. */
  readonly isPreferred: boolean;
}

const IDENTITY = 'identity';

/** `offered`: in the order of the chain, those that may compress the response. */
export function chooseEncoding(acceptEncoding: string, offered: readonly OfferedEncoding[]): ChosenEncoding {
  const accepted = acceptedEncodings(acceptEncoding);
  const refused = new Set(accepted.filter(({ quality }) => quality === 0).map(({ name }) => name));
  const allowed = offered.filter(({ encoding }) => !refused.has(encoding));
  if (accepted.length === 0 || allowed.length === 0) return NOTHING;
  let best = { name: IDENTITY, quality: 0 };
  for (const each of accepted) {
    const offer = allowed.find(({ encoding }) => encoding === each.name);
    if (offer === undefined && each.name !== IDENTITY && each.name !== '*') continue;
    const isAsGood = each.quality === best.quality && each.quality > 0 && offer?.isPreferred === true;
    if (each.quality > best.quality || isAsGood) best = each;
  }
  if (best.quality === 0) return NOTHING;
  if (best.name === IDENTITY) return { encoding: IDENTITY, choice: Choice.Identity };
  if (best.name === '*') return { encoding: allowed[0]!.encoding, choice: Choice.Wildcard };
  return { encoding: best.name, choice: Choice.Named };
}

const NOTHING: ChosenEncoding = { encoding: IDENTITY, choice: Choice.None };

interface Accepted {
  readonly name: string;
  readonly quality: number;
}

/** Elements with a quality that is not a number are left out. */
function acceptedEncodings(text: string): Accepted[] {
  const found: Accepted[] = [];
  for (const element of text.split(',')) {
    if (element === '') continue;
    const [name = '', ...parameters] = element.split(';');
    const quality = parameters.length === 0 ? 1 : qualityOf(parameters.join(';'));
    if (!Number.isNaN(quality)) found.push({ name: name.trim(), quality });
  }
  return found;
}

/** Only the first parameter counts. */
function qualityOf(parameters: string): number {
  const equals = parameters.indexOf('=');
  if (equals < 0 || parameters.slice(0, equals).trim().toLowerCase() !== 'q') return 1;
  return decimalOf(parameters.slice(equals + 1).trim());
}
