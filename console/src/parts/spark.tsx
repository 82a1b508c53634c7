// A small row of bars.

/** A day at a glance, in a table's row. */
export function Spark({ values, label }: { values: number[]; label: string }) {
  const most = Math.max(1, ...values);
  const width = 4;
  return (
    <svg class="spark" role="img" aria-label={label} width={values.length * width} height="22" viewBox={`0 0 ${values.length * width} 22`}>
      {values.map((value, at) => {
        const height = value === 0 ? 1 : Math.max(2, (value / most) * 20);
        return <rect key={at} class={value === 0 ? "none" : ""} x={at * width} y={21 - height} width={width - 1} height={height} rx="0.5" />;
      })}
    </svg>
  );
}
