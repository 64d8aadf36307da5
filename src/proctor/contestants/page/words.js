// What the page says. Instructions, verdicts and names of metrics come from the exam as they are.

const WORDS = {
  en: {
    other: "中文", title: "Take the exam", whoPlays: "Who plays?", name: "Your name", begin: "Begin",
    nameNote: "Your results are kept under this name, and nothing else about you. If you have played before, the same name goes on where you stopped.",
    loading: "Getting the next episode ready …", scoring: "Looking at how you did …", howTo: "How it works", start: "Start", back: "Go on",
    keys: "Keys", episode: (i, n) => `Episode ${i} of ${n}`, steps: (left, all) => `${left} of ${all} steps left`, instruction: "Instruction",
    sure: (what) => `${what}: are you sure?`, sureNote: "This ends the episode. Press Enter once more, or choose.", yes: (what) => `Yes, ${what}`, no: "No, go on",
    giveUp: "Give up", giveUpNote: "This ends the episode as a failure.",
    success: "You did it!", failure: "Not this time", unscored: "This episode does not count", next: "Next episode", last: "To the summary", map: "What you did, from above. It opens in full size.",
    done: (name) => `Thank you, ${name}`, rate: (a, n) => `${a} of ${n} episodes succeeded`, none: "No episode was scored.", more: "Paths, pictures and all numbers:", newPlayer: "Next person",
    ok: "succeeded", notOk: "failed", notScored: "not scored",
    taken: "This session is in use in another window", takenNote: "Only one window at a time can play. If you take over, the other one is told; nothing is lost.", takeOver: "Take over here",
    offline: "The connection is lost. Your episode waits; trying again …", step: (i) => `step ${i}`, picture: "What the robot sees",
  },
  zh: {
    other: "English", title: "参加考试", whoPlays: "谁来参加？", name: "你的名字", begin: "开始",
    nameNote: "成绩只以这个名字保存，不保存你的其他信息。如果以前参加过，输入同样的名字即可继续。",
    loading: "正在准备下一题……", scoring: "正在评分……", howTo: "操作说明", start: "开始", back: "继续",
    keys: "按键", episode: (i, n) => `第 ${i} 题，共 ${n} 题`, steps: (left, all) => `还剩 ${left} 步，共 ${all} 步`, instruction: "指令",
    sure: (what) => `确定要${what}吗？`, sureNote: "本题将结束。再按一次 Enter，或点击选择。", yes: (what) => `是，${what}`, no: "不，继续",
    giveUp: "放弃", giveUpNote: "本题将算作失败。",
    success: "成功！", failure: "这次没有成功", unscored: "本题不计分", next: "下一题", last: "查看总结", map: "你的路线俯视图，点击可放大。",
    done: (name) => `谢谢你，${name}`, rate: (a, n) => `${n} 题中成功 ${a} 题`, none: "没有计分的题目。", more: "查看路线、画面和全部数据：", newPlayer: "下一位",
    ok: "成功", notOk: "失败", notScored: "不计分",
    taken: "考试正在另一个窗口进行", takenNote: "同一时间只能有一个窗口。接管后，另一个窗口会收到提示，进度不会丢失。", takeOver: "在这里继续",
    offline: "连接已断开。你的题目会保留，正在重新连接……", step: (i) => `第 ${i} 步`, picture: "机器人看到的画面",
  },
};
