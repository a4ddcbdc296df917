// A real browser without a window, and a page that notes what must not happen in it.

import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import type { Teardown } from './environment.js';
import { DEFAULT_DEADLINE_MS } from './wait-for.js';

/** Starts Chromium; the test's end closes it. */
export async function startBrowser(t: Teardown, executablePath: string): Promise<Browser> {
  // Loaded here, for every end-to-end test imports this file: it takes as long as a start of Baton.
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({
    executablePath,
    // Its sandbox does not work for root, and a container may have little shared memory.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
  t.teardown(() => browser.close());
  return browser;
}

/** A page, and what went wrong in it. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts and of the console, violations of the page's security policy. */
  readonly problems: string[];
  /** Origins of all requests that it made. */
  readonly origins: Set<string>;
}

/** Opens a page in a context of its own; the test's end closes it. */
export async function openPage(
  t: Teardown,
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  t.teardown(() => context.close());
  context.setDefaultTimeout(DEFAULT_DEADLINE_MS);
  const page = await context.newPage();
  const problems: string[] = [];
  const origins = new Set<string>();
  page.on('console', (message) => {
    // Browsers ask for it by themselves where an answer is no page and names no icon.
    if (message.location().url.endsWith('/favicon.ico')) return;
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== 'data:') origins.add(origin);
  });
  await page.goto(url);
  return { page, problems, origins };
}
