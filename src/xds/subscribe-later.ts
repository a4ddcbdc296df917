// Subscriptions to sources whose code must be loaded first.

import { isDescriptorShortage } from '../common/errors/shortages.js';
import type { Subscription, SubscriptionRequest, Watcher } from './subscription.js';

/** Retry delay after descriptors were exhausted. */
const RETRY_MS = 2000;

export interface LoadedSources {
  subscribe(request: SubscriptionRequest): Subscription;
}

/**
 * Subscribes once the sources are loaded, unless it has been closed by then. If loading fails, calls `failed`, and the watcher
 * proceeds without resources, as after initial_fetch_timeout. If descriptors were exhausted, it retries.
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
  const watcher = timeOutOnce(request.watcher);
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
      .catch((error: unknown) => failed(`the subscriber of ${request.statPrefix} cannot proceed`, error));
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

/** Wraps the watcher so that fetchTimedOut() is called at most once. */
function timeOutOnce(watcher: Watcher): Watcher {
  let isNotified = false;
  return {
    update: (update) => watcher.update(update),
    fetchTimedOut: () => {
      if (isNotified) return;
      isNotified = true;
      watcher.fetchTimedOut();
    },
  };
}
