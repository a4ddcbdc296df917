// A request while a hook has it.

import type { HttpRequest } from '../../../../api/index.js';
import { keyOf } from '../../../script/header-keys.js';
import { textOfHead } from '../../../script/text.js';
import { byteText, type HeaderBlock, methodOf, requestScheme, type StreamControl } from '../../../sdk.js';
import { cookieOf } from './cookies.js';
import { REQUEST } from './direction.js';
import { ScriptMessage } from './message.js';

const HOST = keyOf('host');
const COOKIE = keyOf('cookie');

export class ScriptRequest extends ScriptMessage implements HttpRequest {
  constructor(block: HeaderBlock, endStream: boolean, stream: StreamControl) {
    super(block, endStream, stream, REQUEST);
  }

  get method(): string {
    return this.block.methodText();
  }

  set method(method: string) {
    this.block.setMethod(methodOf(method), method);
  }

  get path(): string {
    return textOfHead(this.block.pathText());
  }

  set path(path: string) {
    this.block.setPath(byteText(path));
  }

  get pathname(): string {
    const { path } = this;
    const end = path.indexOf('?');
    return end < 0 ? path : path.slice(0, end);
  }

  get query(): URLSearchParams {
    const { path } = this;
    const start = path.indexOf('?');
    return new URLSearchParams(start < 0 ? '' : path.slice(start + 1));
  }

  get host(): string {
    return textOfHead(this.block.get(HOST) ?? '');
  }

  set host(host: string) {
    this.block.set(HOST, byteText(host));
  }

  get scheme(): 'http' | 'https' {
    return requestScheme(this.block) === 'https' ? 'https' : 'http';
  }

  cookie(name: string): string | undefined {
    const { block } = this;
    for (let index = block.find(COOKIE); index >= 0; index = block.findNext(COOKIE, index)) {
      const value = cookieOf(block.value(index), name);
      if (value !== undefined) return textOfHead(value);
    }
    return undefined;
  }
}
