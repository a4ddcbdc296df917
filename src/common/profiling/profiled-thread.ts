// Runs profile commands on this thread. The profilers are loaded at the first command.

import { messageOf } from '../errors/errors.js';
import { onDemand } from '../package/on-demand.js';
import type { ProfileCommand, ProfileReply } from './profile.js';
import type { ThreadProfilers } from './thread-profilers.js';

const loadProfilers = onDemand(() => import('./thread-profilers.js'));

export class ProfiledThread {
  readonly #name: string;
  #profilers: ThreadProfilers | undefined;

  /** `primary`, `worker_0`, … */
  constructor(name: string) {
    this.#name = name;
  }

  /** Runs a command; never rejects. */
  async run(command: ProfileCommand): Promise<ProfileReply> {
    try {
      const { ThreadProfilers } = await loadProfilers();
      this.#profilers ??= new ThreadProfilers(this.#name);
      return { thread: this.#name, profile: await this.#profilers.run(command) };
    } catch (error) {
      return { thread: this.#name, error: messageOf(error) };
    }
  }
}
