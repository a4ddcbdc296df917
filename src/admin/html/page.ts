// The common parts of all admin pages: frame, headers, and the answer in a build without pages.

import { ADMIN_HTML } from '../../common/package/generated/build.js';
import { type AdminResponse, type Pieces, Refusal } from '../admin-handler.js';

export interface PageParts {
  /** Window title after the product's name; '' for the home page. */
  readonly title: string;
  /** Path of the page's script in src/admin/web. */
  readonly script: string;
}

/**
 * Allows only the server's own files, no inline scripts or styles, and no frame around the page. Forms and requests of
 * scripts go only to the server.
 */
const SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E" +
  "%3Crect width='16' height='16' rx='4' fill='%231f6f8b'/%3E" +
  "%3Cpath d='M4 12 12 4' stroke='%23fff' stroke-width='3' stroke-linecap='round'/%3E%3C/svg%3E";

/** Returns an answer that is a page. */
export function page(body: string | Pieces): AdminResponse {
  return {
    contentType: 'text/html; charset=UTF-8',
    headers: {
      'content-security-policy': SECURITY_POLICY,
      // With 'no-referrer' browsers would send forms with `Origin: null`, as from another origin.
      'referrer-policy': 'same-origin',
    },
    body,
  };
}

/** Returns the page up to its own content. Links are relative: the page may be behind a proxy, under any path. */
export function pageHead({ title, script }: PageParts): string {
  return `<!DOCTYPE html>
<html lang='en'>
<head>
<meta charset='utf-8'>
<meta name='viewport' content='width=device-width, initial-scale=1'>
<meta name='color-scheme' content='light dark'>
<title>Baton Admin${title === '' ? '' : ` · ${escapeHtml(title)}`}</title>
<link rel='icon' href="${ICON}">
<link rel='stylesheet' href='web/admin.css'>
<script src='web/scripted.js'></script>
<script type='module' src='web/${script}'></script>
</head>
<body>
<a class='skip' href='#content'>Skip to content</a>
<header class='bar'>
<a class='brand' href='./'>Baton <span>Admin</span></a>
<nav aria-label='Pages'><a href='./'>Home</a><a href='stats?format=html'>Stats</a><a href='stats?format=active-html'>Active stats</a></nav>
<p id='status' role='status'></p>
</header>
<main id='content'>
`;
}

/** The page after its content. */
export const PAGE_TAIL = '</main>\n</body>\n</html>\n';

/** Escapes text for an element or a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}

export const ENTITIES: { readonly [character: string]: string } = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Returns the answer of a build without pages. `what`: the output. */
export function htmlDisabled(what: 'HTML' | 'Active HTML'): string {
  return `${what} output was disabled by building with --define=admin_html=disabled`;
}

/** Throws a Refusal in a build without pages. */
export function requireHtml(what: 'HTML' | 'Active HTML'): void {
  if (!ADMIN_HTML) throw new Refusal(400, htmlDisabled(what));
}
