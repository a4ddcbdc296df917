// Checks the health of a Redis server: with PING, or with EXISTS if a key says that the server is under maintenance.

import type { Credentials } from '../../../extensions/filters/network/redis-proxy/cluster-options.js';
import { isErrorReply } from '../../../extensions/filters/network/redis-proxy/resp/reply-reader.js';
import { textCommand } from '../../../extensions/filters/network/redis-proxy/resp/write.js';
import type { CallingThread } from '../../../upstream/calling-thread.js';
import type { CheckTarget } from '../../../upstream/health-checks/check-target.js';
import type { Checker, OnChecked } from '../../../upstream/health-checks/checker.js';
import type { RedisCheckSpec } from '../../../upstream/health-checks/health-check-spec.js';
import { Outcome } from '../../../upstream/health-checks/host-health.js';
import { RedisClient, type RedisResult } from './redis-client.js';

export interface RedisCheckerOptions {
  readonly spec: RedisCheckSpec;
  readonly credentials: Credentials | undefined;
  readonly timeoutMs: number;
  readonly reusesConnection: boolean;
}

export class RedisChecker implements Checker {
  readonly #client: RedisClient;
  readonly #options: RedisCheckerOptions;
  readonly #command: Buffer;
  readonly #onChecked: OnChecked;

  constructor(caller: CallingThread, target: CheckTarget, options: RedisCheckerOptions, onChecked: OnChecked) {
    const { key } = options.spec;
    this.#client = new RedisClient(caller, target, options.credentials);
    this.#options = options;
    this.#command = key === '' ? textCommand('PING') : textCommand('EXISTS', key);
    this.#onChecked = onChecked;
  }

  begin(): void {
    this.#client.request(this.#command, this.#options.timeoutMs, (result) => this.#checked(result));
  }

  close(): void {
    this.#client.close();
  }

  #checked(result: RedisResult): void {
    if (result.reply === undefined) {
      return this.#onChecked(result.isTimeout ? Outcome.Timeout : Outcome.NetworkFailure, result.reason);
    }
    const text = Buffer.from(result.reply.subarray(0, MAX_TEXT)).toString('latin1');
    const isError = isErrorReply(result.reply);
    if (!this.#options.reusesConnection) this.#client.close();
    const { key } = this.#options.spec;
    if (text === (key === '' ? PONG : ABSENT)) {
      return this.#onChecked(Outcome.Passed, key === '' ? 'it has answered PONG' : 'it does not have the key');
    }
    if (isError) return this.#onChecked(Outcome.Failed, 'it has answered with an error');
    this.#onChecked(Outcome.Failed, key === '' ? 'it has not answered PONG' : 'it has the key');
  }
}

const PONG = '+PONG\r\n';
const ABSENT = ':0\r\n';
const MAX_TEXT = 16;
