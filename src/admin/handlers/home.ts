// GET /: the home page, with the state of the server and links to all endpoints.

import { ADMIN_HTML } from '../../common/package/generated/build.js';
import type { AdminHandler } from '../admin-handler.js';
import type { AdminServices } from '../admin-services.js';
import { endpointRows } from '../html/forms.js';
import { escapeHtml, htmlDisabled, PAGE_TAIL, page, pageHead } from '../html/page.js';

export const home: AdminHandler = {
  path: '/',
  mutates: false,
  help: 'Admin home page',
  parameters: [],
  handle({ handlers }, services) {
    if (!ADMIN_HTML) return { body: htmlDisabled('HTML') };
    return page(
      `${pageHead({ title: '', script: 'home/home.js' })}${serverSection(services)}${LIVE_SECTIONS}` +
        `${endpointsSection(handlers)}${PAGE_TAIL}`,
    );
  },
};

/** The identity and state of the server; a script updates them. */
function serverSection(services: AdminServices): string {
  const { currentEpoch, allEpochs } = services.uptimes();
  const { id = '', cluster = '' } = services.node;
  const state = services.state();
  const facts: readonly (readonly [id: string, name: string, value: string])[] = [
    ['server-state', 'State', state],
    ['server-version', 'Version', services.version],
    ['server-uptime', 'Uptime', uptimeText(currentEpoch)],
    ['server-uptime-all', 'Since the first epoch', uptimeText(allEpochs)],
    ['server-node', 'Node', [id, cluster].filter((part) => part !== '').join(' · ') || 'unnamed'],
  ];
  const rows = facts.map(
    ([id, name, value]) =>
      `<div><dt>${name}</dt><dd id='${id}' data-value='${escapeHtml(value)}'>${escapeHtml(value)}</dd></div>`,
  );
  return `<h1>Server</h1>\n<dl class='facts'>\n${rows.join('\n')}\n</dl>\n`;
}

/** Filled by the script, and hidden without it. The note also shows if scripts are enabled but blocked. */
const LIVE_SECTIONS = `<p class='note no-script'>Without JavaScript this page shows no live figures: see
<a href='clusters'>clusters</a>, <a href='listeners'>listeners</a> and <a href='stats?format=html&amp;usedonly'>stats</a>.</p>
<section id='gauges' class='gauges' aria-label='Live figures' hidden></section>
<section id='clusters-section' aria-labelledby='clusters-title' hidden><h2 id='clusters-title'>Clusters</h2></section>
<section id='listeners-section' aria-labelledby='listeners-title' hidden><h2 id='listeners-title'>Listeners</h2></section>
`;

function endpointsSection(handlers: readonly AdminHandler[]): string {
  let rows = '';
  handlers.forEach((handler, index) => {
    if (handler.path !== '/') rows += endpointRows(handler, { index: index + 1 });
  });
  return `<section aria-labelledby='endpoints-title'>
<h2 id='endpoints-title'>Endpoints</h2>
<p id='result' role='status' hidden></p>
<table class='home-table'>
<thead><tr><th scope='col'>Command</th><th scope='col'>Description</th></tr></thead>
<tbody>
${rows}</tbody>
</table>
</section>
`;
}

/** `2d 3h`, `3h 25m`, `25m 7s` or `7s`. */
function uptimeText(seconds: number): string {
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60];
  const first = parts.findIndex((part) => part > 0);
  if (first < 0) return '0s';
  return parts
    .map((part, index) => `${part}${'dhms'[index]}`)
    .slice(first, first + 2)
    .join(' ');
}
