// envoy.path.rewrite.uri_template: makes a new path from the variables of the template that the path has matched.

import { BatonError } from '../../../common/errors/errors.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { pathEndOf } from '../matching/query.js';
import type { UriTemplate } from '../matching/uri-template.js';
import { recordOriginalPath } from './path-rewrite.js';

/** Variables and literals. Envoy refuses empty segments. */
const PART = /\{([A-Za-z]\w*)\}|[\w.~!$&'()*+,;:@%=/-]+/y;

export class TemplateRewrite {
  readonly #template: UriTemplate;
  /** Literal texts, and between them indexes of groups. */
  readonly #parts: readonly (string | number)[];

  /** @throws BatonError CONFIG_INVALID; `where` is the path of path_template_rewrite */
  constructor(template: UriTemplate, rewrite: string, where: string) {
    this.#template = template;
    this.#parts = partsOf(rewrite, template, where);
  }

  /** Rewrites the request's path and keeps its query. With `keepsOriginal`, x-envoy-original-path gets the former one. */
  apply(headers: HeaderBlock, keepsOriginal: boolean): void {
    const { memory, pathEnd, pathStart } = headers;
    const end = pathEndOf(memory.bytes, pathStart, pathEnd);
    const groups = this.#template.regex.exec(memory.text(pathStart, end));
    // A filter has changed the path since the route was found.
    if (groups === null) return;
    const query = memory.text(end, pathEnd);
    if (keepsOriginal) recordOriginalPath(headers);
    const parts = this.#parts.map((part) => (typeof part === 'string' ? part : (groups[part] ?? '')));
    headers.setTarget(parts.join('') + query);
  }
}

function partsOf(rewrite: string, { names }: UriTemplate, where: string): (string | number)[] {
  const fail = (message: string): never => {
    throw new BatonError('CONFIG_INVALID', `path_template_rewrite '${rewrite}' ${message}`, { where });
  };
  if (!rewrite.startsWith('/') || rewrite.includes('//')) fail("must begin with '/', and have no empty segment");
  const parts: (string | number)[] = [];
  for (let at = 0; at < rewrite.length; at = PART.lastIndex) {
    PART.lastIndex = at;
    const [text, name] = PART.exec(rewrite) ?? fail('is not valid');
    if (name === undefined) parts.push(text);
    else if (!names.includes(name)) fail(`has a variable '${name}' that the path_template of the route lacks`);
    else parts.push(names.indexOf(name) + 1);
  }
  return parts;
}
