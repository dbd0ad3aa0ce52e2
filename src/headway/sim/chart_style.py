"""How the chart looks: one palette for page and image, and the page's style and script.

The lane colours follow Okabe and Ito, who chose them to be told apart by everybody;
some are darkened for white paper or lightened for a dark screen.
"""

from typing import Final

LANES: Final = {
    "light": (
        "#0072b2",
        "#d55e00",
        "#008561",
        "#b4508a",
        "#b07800",
        "#2b93cf",
        "#5b4fa8",
        "#6b7280",
    ),
    "dark": (
        "#58b4ee",
        "#ff8a45",
        "#2fc79b",
        "#e792c3",
        "#f0b93a",
        "#9ad4ff",
        "#a99cf0",
        "#a3adb8",
    ),
}
INKS: Final = {
    "light": {
        "paper": "#ffffff",
        "ink": "#1b2530",
        "soft": "#5d6875",
        "grid": "#e7eaee",
        "base": "#a9b2bc",
        "carried": "#c6d3de",
        "beyond": "#f4c9a8",
        "good": "#008561",
        "bad": "#c2410c",
        "raised": "#f6f7f9",
    },
    "dark": {
        "paper": "#11161c",
        "ink": "#e7ebef",
        "soft": "#98a4b0",
        "grid": "#222b34",
        "base": "#55616d",
        "carried": "#33485a",
        "beyond": "#7a4522",
        "good": "#2fc79b",
        "bad": "#ff8a45",
        "raised": "#18202a",
    },
}


def variables(theme: str) -> str:
    """The palette as CSS custom properties."""
    inks = [f"--{name}:{color}" for name, color in INKS[theme].items()]
    lanes = [f"--lane{n}:{color}" for n, color in enumerate(LANES[theme])]
    return ";".join([f"color-scheme:{theme}", *inks, *lanes])


def palette(theme: str | None) -> str:
    """As the reader's system asks for, or as `theme` says."""
    if theme is not None:
        return f":root{{{variables(theme)}}}"
    dark = f"@media (prefers-color-scheme:dark){{:root{{{variables('dark')}}}}}"
    return f":root{{{variables('light')}}}{dark}"


STYLE: Final = (
    """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
 font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{max-width:1120px;margin:0 auto;padding:36px 20px 56px}
h1{font-size:26px;line-height:1.25;margin:0 0 6px;letter-spacing:-.01em;text-wrap:balance}
.lead{color:var(--soft);margin:0 0 22px}
.lead b{color:var(--ink);font-weight:600}
figure{margin:0;position:relative}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{font-size:12px;fill:var(--soft)}
.end{text-anchor:end}.middle{text-anchor:middle}
.tick{font-variant-numeric:tabular-nums}
svg .name{font-size:13.5px;font-weight:650}
.grid{stroke:var(--grid)}.base{stroke:var(--base)}
.curve{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;
 stroke-linecap:round}
.band{fill:currentColor;opacity:.17;stroke:none}
.dot{fill:currentColor}
.slo{stroke:currentColor;stroke-width:1.2;stroke-dasharray:5 4;opacity:.85}
.leader{stroke:currentColor;stroke-width:1;opacity:.6}
.pause{stroke:currentColor;stroke-width:1.1;stroke-dasharray:1 4;stroke-linecap:round;
 opacity:.75}
svg .note{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
.moment{stroke:var(--base);stroke-dasharray:1 3}
.carried{fill:var(--carried)}.beyond{fill:var(--beyond)}
.slots{fill:none;stroke:var(--soft);stroke-width:1.4}
.hair{stroke:var(--soft);stroke-width:1}
svg text[class*=lane]{fill:currentColor}
"""
    + "".join(f".lane{n}{{color:var(--lane{n})}}" for n in range(len(LANES["light"])))
    + """
.readout{position:absolute;top:8px;pointer-events:none;background:var(--paper);
 border:1px solid var(--base);border-radius:8px;padding:8px 11px;font-size:12.5px;
 box-shadow:0 4px 16px rgb(0 0 0/.14);white-space:nowrap;
 font-variant-numeric:tabular-nums}
.readout b{display:block;margin-bottom:2px}
.readout i{font-style:normal;color:currentColor;font-weight:650}
.readout div{display:flex;gap:16px;justify-content:space-between;color:var(--ink)}
.key{color:var(--soft);font-size:13px;margin:10px 0 30px;max-width:74ch}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:8px 14px;text-align:right;border-bottom:1px solid var(--grid);
 white-space:nowrap}
th{font-weight:500;color:var(--soft);font-size:13px;border-bottom-color:var(--base)}
th:first-child,td:first-child{text-align:left;padding-left:0}
td:first-child{font-weight:600;max-width:26em;overflow:hidden;text-overflow:ellipsis}
.kept{display:inline-flex;align-items:center;gap:10px}
.kept span{display:inline-block;width:110px;height:7px;border-radius:4px;
 background:var(--grid);overflow:hidden}
.kept i{display:block;height:100%;border-radius:4px;background:var(--bad)}
.kept b{font-weight:400;min-width:3.6em}
.kept.good i{background:var(--good)}
td small{color:var(--soft);font-size:12.5px}
td.good{color:var(--good);font-weight:600}td.good small{font-weight:400}
footer{color:var(--soft);font-size:12.5px;margin-top:26px;overflow-wrap:anywhere}
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(420px,100%),1fr));
 gap:26px 30px;margin-bottom:16px}
.panels h2{font-size:15px;margin:0 0 4px;display:flex;justify-content:space-between;
 align-items:baseline;gap:12px}
.panels h2 small{font-weight:400;font-size:13px;color:var(--soft)}
.keys{display:flex;flex-wrap:wrap;gap:4px 22px;margin:0 0 18px;padding:0;list-style:none}
.keys b{color:currentColor}.keys span{color:var(--soft)}
"""
)

SCRIPT: Final = """
const data=JSON.parse(document.getElementById("series").textContent);
const figure=document.querySelector("figure"),svg=figure.querySelector("svg");
const cursor=svg.querySelector(".cursor"),hair=cursor.querySelector("line");
const box=document.createElement("div");box.className="readout";box.hidden=true;
figure.append(box);
const add=(parent,tag,text,style)=>{const made=document.createElement(tag);
 made.textContent=text;if(style)made.className=style;parent.append(made);return made};
const span=ms=>ms<1000?ms+" ms":ms<60000?(ms/1000).toFixed(1)+" s":
 ms<3600000?(ms/60000).toFixed(1)+" min":(ms/3600000).toFixed(1)+" h";
const row=(name,value,style)=>{const line=add(box,"div","");
 const left=add(line,"span","",style);add(left,style?"i":"span",name);
 add(line,"span",value)};
const hide=()=>{box.hidden=true;cursor.setAttribute("visibility","hidden")};
figure.addEventListener("pointerleave",hide);
figure.addEventListener("pointermove",event=>{
 const area=svg.getBoundingClientRect(),scale=area.width/data.width;
 const across=(event.clientX-area.left)/scale,along=(across-data.left)/data.span;
 if(along<0||along>1)return hide();
 const at=along*data.end,bin=Math.floor(at/data.bin);
 hair.setAttribute("x1",across);hair.setAttribute("x2",across);
 cursor.setAttribute("visibility","visible");
 box.replaceChildren();box.hidden=false;
 add(box,"b","at "+span(Math.round(at)));
 for(const lane of data.lanes){const wait=lane.p99[bin];
  row(lane.name,wait==null?"no start":span(wait),lane.tone)}
 row("arriving",Math.round((data.arrivals[bin]||0)*1000/data.bin)+" jobs/s");
 row("slots",String(Math.round(data.slots[bin]||0)));
 const flip=along>.6;
 box.style.left=flip?"auto":(event.clientX-area.left+16)+"px";
 box.style.right=flip?(area.right-event.clientX+16)+"px":"auto";
});
"""
