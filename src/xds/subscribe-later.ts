// Subscriptions to sources whose code is still to be loaded.

import { isDescriptorShortage } from '../common/errors/shortages.js';
import type { Subscription, SubscriptionRequest, Watcher } from './subscription.js';

/** How long after a try for which there were too few descriptors the next one begins. */
const RETRY_MS = 2000;

export interface LoadedSources {
  subscribe(request: SubscriptionRequest): Subscription;
}

/**
 * Subscribes when there are sources, unless it has been closed by then. When there are none, `failed` is told, and the watcher goes on
 * without, as after initial_fetch_timeout. It subscribes later where only descriptors were short.
 */
export function subscribeLater(
  load: () => Promise<LoadedSources>,
  request: SubscriptionRequest,
  failed: (what: string, error: unknown) => void,
  retryMs = RETRY_MS,
): Subscription {
  let { names } = request;
  let inner: Subscription | undefined;
  let isClosed = false;
  let retry: NodeJS.Timeout | undefined;
  const watcher = timingOutOnce(request.watcher);
  const begin = (isRepeated: boolean): void => {
    load()
      .then((loaded) => {
        if (!isClosed) inner = loaded.subscribe({ ...request, watcher, names });
      })
      .catch((error: unknown) => {
        if (!isRepeated || !isDescriptorShortage(error))
          failed(`the subscription ${request.statPrefix} cannot begin`, error);
        if (isClosed) return;
        if (isDescriptorShortage(error)) retry = setTimeout(begin, retryMs, true);
        watcher.fetchTimedOut();
      })
      .catch((error: unknown) => failed(`what waited for ${request.statPrefix} cannot go on`, error));
  };
  begin(false);
  return {
    setNames: (wanted) => {
      names = wanted;
      inner?.setNames(wanted);
    },
    close: () => {
      isClosed = true;
      clearTimeout(retry);
      inner?.close();
    },
  };
}

/** The same watcher, which is told once at most that nothing has come. */
function timingOutOnce(watcher: Watcher): Watcher {
  let isTold = false;
  return {
    update: (update) => watcher.update(update),
    fetchTimedOut: () => {
      if (isTold) return;
      isTold = true;
      watcher.fetchTimedOut();
    },
  };
}
