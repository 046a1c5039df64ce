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
