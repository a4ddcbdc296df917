// ctx.log: lines of a module in Baton's log.

import type { Log } from '../../api/index.js';
import { getLogger, shownName } from '../sdk.js';

const logger = getLogger('filter');

export class ModuleLog implements Log {
  readonly #prefix: string;

  constructor(module: string) {
    this.#prefix = `[${module}] `;
  }

  debug(text: string): void {
    if (logger.isDebug) logger.debug(this.#line(text));
  }

  info(text: string): void {
    logger.info(this.#line(text));
  }

  warn(text: string): void {
    logger.warning(this.#line(text));
  }

  error(text: string): void {
    logger.error(this.#line(text));
  }

  /** One line: the text may contain what a client has sent. */
  #line(text: string): string {
    return this.#prefix + shownName(String(text));
  }
}
