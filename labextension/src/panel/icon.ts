import { LabIcon } from '@jupyterlab/ui-components';

/** The panel's icon: a bar chart with the dot of a conversation. */
export const analystIcon = new LabIcon({
  name: 'dm-jupyter:analyst',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <rect x="3" y="12" width="4" height="9" rx="1"/>
    <rect x="10" y="7" width="4" height="14" rx="1"/>
    <rect x="17" y="14" width="4" height="7" rx="1"/>
    <circle cx="19" cy="6" r="3"/>
  </g>
</svg>`
});

/** Several tries that become one answer. */
export const tryHarderIcon = new LabIcon({
  name: 'dm-jupyter:try-harder',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <circle cx="4" cy="5" r="2.5"/>
    <circle cx="4" cy="12" r="2.5"/>
    <circle cx="4" cy="19" r="2.5"/>
    <path d="M8 4h3l5 7h1.5V8l5 4-5 4v-3H16l-5 7H8v-2h2l3.5-5H8v-2h5.5L10 6H8z"/>
  </g>
</svg>`
});
