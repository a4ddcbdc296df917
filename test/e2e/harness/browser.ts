// A headless browser, and a page that records errors and requests.

import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import type { Teardown } from './environment.js';
import { DEFAULT_DEADLINE_MS } from './wait-for.js';

/** Starts Chromium; it is closed when the test ends. */
export async function startBrowser(t: Teardown, executablePath: string): Promise<Browser> {
  // Imported lazily: every end-to-end test imports this file, and loading it takes as long as a start of Baton.
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({
    executablePath,
    // Its sandbox does not work for root, and containers may have little shared memory.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
  t.teardown(() => browser.close());
  return browser;
}

/** A page, with its errors and the origins of its requests. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts and of the console, and violations of the page's security policy. */
  readonly problems: string[];
  /** Origins of all requests of the page. */
  readonly origins: Set<string>;
}

/** Opens a page in a new browser context; it is closed when the test ends. */
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
    // Browsers request it on their own when a response is not a page and names no icon.
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
