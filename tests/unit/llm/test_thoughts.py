"""A model's thoughts are removed from its answer, and what an answer says about them stays."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from memoryproject.foundation.integrations.llm.thoughts import without_calls, without_thoughts
from tests.tables import table

SECRET = "The owner told me Dana owes 500."
ANSWER = "We open at 9."


@table(
    "told",
    [
        f"<think>\n{SECRET}\n</think>\n\n{ANSWER}",
        f"<think>{SECRET}</think>{ANSWER}",
        f"<THINK>{SECRET}</THINK>{ANSWER}",
        f"\ufeff  <think>{SECRET}</think> {ANSWER}",
        f"< think >{SECRET}</ think >{ANSWER}",
        f'<think time="3" lang=en>{SECRET}</think>{ANSWER}',
        f"<thinking>{SECRET}</thinking>\n{ANSWER}",
        f"<thought>{SECRET}</thought>\n{ANSWER}",
        f"<reasoning>{SECRET}</reasoning>\n{ANSWER}",
        f"<reflection>{SECRET}</reflection>\n{ANSWER}",
        f"<seed:think>{SECRET}</seed:think>\n{ANSWER}",
        f"<antThinking>{SECRET}</antThinking>\n{ANSWER}",
        f"<think>{SECRET}</thinking>{ANSWER}",
        f"<think>a</think><think>{SECRET}</think>{ANSWER}",
        f"<think>a<think>{SECRET}</think>{SECRET}</think>{ANSWER}",
        f"<thinking>{SECRET}<reflection>{SECRET}</reflection>x</thinking><output>{ANSWER}</output>",
        f"<think>{SECRET}</think><answer>{ANSWER}</answer>",
        f"<think>{SECRET}</think>\n<answer>{ANSWER}",
        f"<think></think>{ANSWER}",
        f"<think>\n\n</think>\n\n{ANSWER}",
        f"<think/>{ANSWER}",
        f'<think>I say "hi"</think>{ANSWER}',
        f"<think>In `<think>` and `</think>` I think. {SECRET}</think>{ANSWER}",
        f"<think>\n```\nx\n</think>\n{ANSWER}",
        f"{SECRET}\n</think>\n\n{ANSWER}",
        f"Okay, the user asks for hours </think> {ANSWER}",
        f"{SECRET}</think>{ANSWER}",
        f"המשתמש שואל על השעות </think> {ANSWER}",
        f"{SECRET}[/THINK]{ANSWER}",
        f"{ANSWER}\n<think>{SECRET}",
        f"{ANSWER}\n\n<think>\n{SECRET}\n</think>",
        f"{ANSWER} <think>{SECRET}</think>",
        f"[THINK]{SECRET}[/THINK]{ANSWER}",
        f"[THINK]\n{SECRET}\n[/THINK]\n{ANSWER}",
        f"◁think▷{SECRET}◁/think▷{ANSWER}",
        f"<|START_THINKING|>{SECRET}<|END_THINKING|><|START_RESPONSE|>{ANSWER}<|END_RESPONSE|>",
        f"<|begin_of_thought|>{SECRET}<|end_of_thought|>\n<|begin_of_solution|>{ANSWER}"
        "<|end_of_solution|>",
        f"<|channel>thought\n{SECRET}<channel|>{ANSWER}<turn|>",
        f"<|channel|>analysis<|message|>{SECRET}<|end|><|start|>assistant<|channel|>final"
        f"<|message|>{ANSWER}<|return|>",
        f"<|channel|>analysis<|message|>{SECRET}<|channel|>final<|message|>{ANSWER}",
        f"<|start|>assistant<|channel|>commentary to=functions.x <|constrain|>json<|message|>{{}}"
        f"<|call|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
        f"{SECRET}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
        f"<|channel|>final<|message|>{ANSWER}",
        f"analysisThe user asks. {SECRET}assistantfinal{ANSWER}",
        f"{ANSWER}<|im_end|>",
        f"{ANSWER}<|im_end|>\n<|im_start|>user\nAnd on Sunday?<|im_end|>",
        f"<|im_start|>assistant\n{ANSWER}<|im_end|>",
        f"{ANSWER}<|eot_id|>",
        f"<|start_header_id|>assistant<|end_header_id|>\n\n{ANSWER}<|eot_id|>",
        f"{ANSWER}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd on Sunday?",
        f"{ANSWER}<|endoftext|>",
        f"{ANSWER}</s>",
        f"<s> {ANSWER}</s>",
        f"{ANSWER}<end_of_turn>\n",
        f"<start_of_turn>model\n{ANSWER}<end_of_turn>\n<start_of_turn>user\nAnd on Sunday?",
        f"{ANSWER}<｜end▁of▁sentence｜>",
        f"<think>{SECRET}</think>{ANSWER}<｜end▁of▁sentence｜><｜User｜>And on Sunday?",
        f"[INST] {ANSWER}[/INST]",
        f"&lt;think&gt;{SECRET}&lt;/think&gt;{ANSWER}",
        f"&lt;think&gt;\n{SECRET}\n&lt;/thinking&gt;\n\n{ANSWER}",
        f"```thinking\n{SECRET}\n```\n{ANSWER}",
        f"<details><summary>💭 Thinking</summary>\n{SECRET}\n</details>\n\n{ANSWER}",
        f"> **Reasoning**\n> {SECRET}\n> {SECRET}\n\n{ANSWER}",
        f"*thinks: {SECRET}*\n\n{ANSWER}",
        f"(Internal note: {SECRET})\n\n{ANSWER}",
        f"[Inner thoughts: {SECRET}] {ANSWER}",
        f"思考：{SECRET}\n回答：{ANSWER}",
        f"Okay, the user is asking about {SECRET} Let me see.\n\n{ANSWER}",
        f"Hmm, the user wants {SECRET}\n\nSo the user said {SECRET}\n\n{ANSWER}",
        f"<final>{ANSWER}</final>",
        f"{ANSWER}\n~~~ Reasoning\n{SECRET}",
        f"**Thinking:** {SECRET}\n\n**Answer:** {ANSWER}",
        f"**Reasoning:** {SECRET} **Answer:** {ANSWER}",
        f"### Thoughts:\n{SECRET}\n\n### Final answer:\n{ANSWER}",
        f"Here is my thought process: {SECRET}\nHere is my response: {ANSWER}",
        f"Here's my thinking process:\n{SECRET}\n\nHere's my answer:\n{ANSWER}",
        f"**מחשבה:** {SECRET}\n**תשובה:** {ANSWER}",
        json.dumps({"thought": SECRET, "answer": ANSWER}),
        "```json\n" + json.dumps({"reasoning": SECRET, "response": ANSWER}) + "\n```",
        f"{ANSWER}\nUser: and the price?\nAssistant: {SECRET}",
        f"{ANSWER}\n\nHuman: and the price?\n\nAssistant: {SECRET}\n\nHuman: thanks",
        f"{ANSWER}\n### User:\nprice?\n### Assistant:\n{SECRET}",
        f"{ANSWER}</s>[INST] and the price? [/INST] {SECRET}",
        f"{ANSWER}</s><s>[INST] and the price? [/INST]{SECRET}",
        f"{ANSWER}<|im_end|>\n{SECRET}",
        f"{ANSWER}<|eot_id|>{SECRET}",
    ],
)
def test_only_the_answer_is_left(told: str) -> None:
    assert without_thoughts(told) == ANSWER


# More forms, each with SECRET and ANSWER in their places.
FORMS = [
    "assistantanalysis{SECRET}assistantfinal{ANSWER}",
    "analysis\n\n{SECRET}\n\nassistantfinal\n\n{ANSWER}",
    "assistantcommentary{SECRET}assistantfinal{ANSWER}",
    "assistantfinal{ANSWER}",
    '{"analysis": "{SECRET}", "final": "{ANSWER}"}',
    '{"plan": "{SECRET}", "final_answer": "{ANSWER}"}',
    '{"reply":"{ANSWER}"}',
    '{"response": "{ANSWER}"}',
    '```json\n{"reply": "{ANSWER}"}\n```',
    "*(internal reasoning: {SECRET})*\n\n{ANSWER}",
    "_(Internal monologue: {SECRET})_\n{ANSWER}",
    "[Internal analysis: {SECRET}]\n\n{ANSWER}",
    "<plan>{SECRET}</plan>\n<answer>{ANSWER}</answer>",
    "<plan>{SECRET}</plan>{ANSWER}",
    "<monologue>{SECRET}</monologue>{ANSWER}",
    "<user_analysis>{SECRET}</user_analysis>{ANSWER}",
    "<planning>\n{SECRET}\n</planning>\n\n{ANSWER}",
    "<internal_thoughts>{SECRET}</internal_thoughts>\n{ANSWER}",
    "<self_reflection>{SECRET}</self_reflection>{ANSWER}",
    "<חשיבה>{SECRET}</חשיבה>{ANSWER}",
    "<思考>{SECRET}</思考>{ANSWER}",
    "<мысли>{SECRET}</мысли>\n{ANSWER}",
    "<pensamiento>{SECRET}</pensamiento>\n{ANSWER}",
    "<réflexion>{SECRET}</réflexion>\n{ANSWER}",
    "<تفكير>{SECRET}</تفكير>\n{ANSWER}",
    "### Reasoning\n{SECRET}\n\n### Response\n{ANSWER}",
    "**Reasoning**\n{SECRET}\n\n**Answer**\n{ANSWER}",
    "## Thought process\n{SECRET}\n## Final Answer\n{ANSWER}",
    "# Thinking\n\n{SECRET}\n\n# Reply\n\n{ANSWER}",
    "### חשיבה\n{SECRET}\n\n### תשובה\n{ANSWER}",
    "We need to answer the user. {SECRET}. So final answer: {ANSWER}",
    "We need to respond in Hebrew. {SECRET}.\n\n{ANSWER}",
    "Okay, let me think about what the user wants. {SECRET}\n\n{ANSWER}",
    "I need to respond to the user's greeting. {SECRET}\n\n{ANSWER}",
    "Alright, let me figure out what the user needs. {SECRET}\n\n{ANSWER}",
    "First, I need to look at the user's question. {SECRET}\n\n{ANSWER}",
    "The user's message says hi. {SECRET}\n\n{ANSWER}",
    "User asks about hours. {SECRET}\n\n{ANSWER}",
    "We should reply to the user politely. {SECRET}\n\n{ANSWER}",
    "We must answer in English. {SECRET}\n\n{ANSWER}",
    "{ANSWER}\n\n(Note to self: {SECRET})",
    "{ANSWER}\n\n[Internal: {SECRET}]",
    "{ANSWER}\n\n*Internal note: {SECRET}*",
    "{ANSWER}\n\n(Internal reasoning: {SECRET})",
    "{ANSWER}\n[Thinking: {SECRET}]",
    "<answer>{ANSWER}</answer>",
    "<response>{ANSWER}</response>",
    "<response>\n{ANSWER}\n</response>",
    "Final answer: {ANSWER}",
    "**Final Answer:** {ANSWER}",
    "\\boxed{{ANSWER}}",
    "$\\boxed{{ANSWER}}$",
    "תשובה סופית: {ANSWER}",
    "Respuesta final: {ANSWER}",
    "Réponse finale : {ANSWER}",
    "Окончательный ответ: {ANSWER}",
    "最终答案：{ANSWER}",
    "analysisWe should be short. {SECRET}assistantfinal{ANSWER}",
    "analysis\nThe user greets. {SECRET}\nassistantfinal\n{ANSWER}",
    "assistantanalysis\n{SECRET}\nassistantcommentary to=x{}\nassistantfinal\n{ANSWER}",
    '{"thinking": "{SECRET}", "reply": "{ANSWER}"}',
    '{"final_answer": "{ANSWER}"}',
    '{"thoughts": "{SECRET}", "final": "{ANSWER}"}',
    "<pre_analysis>{SECRET}</pre_analysis>\n{ANSWER}",
    "<gedanken>{SECRET}</gedanken>\n{ANSWER}",
    "<razonamiento>{SECRET}</razonamiento> {ANSWER}",
    "<מחשבות>{SECRET}</מחשבות>\n{ANSWER}",
    "<düşünce>{SECRET}</düşünce>{ANSWER}",
    "<internal_plan>{SECRET}</internal_plan>\n\n{ANSWER}",
    "<step_reflection>{SECRET}</step_reflection>\n{ANSWER}",
    "**Thought process**\n{SECRET}\n\n**Final Response**\n{ANSWER}",
    "## 思考\n{SECRET}\n\n## 回答\n{ANSWER}",
    "#### Chain of thought\n{SECRET}\n\n#### Final answer\n{ANSWER}",
    "Let me think about how to answer the user here. {SECRET}\n\n{ANSWER}",
    "We should check what the user wants: {SECRET}\n\n{ANSWER}",
    "I should respond to the user in a kind way. {SECRET}\n\n{ANSWER}",
    "Now the user says hello again. {SECRET}\n\n{ANSWER}",
    "We must respond in Arabic. {SECRET}.\n\n{ANSWER}",
    "{ANSWER}\n\n*(Note to self: {SECRET})*",
    "{ANSWER}\n\n[Internal note: {SECRET}]",
    "{ANSWER}\n\n(Thought: {SECRET})",
    "{ANSWER}\n\n_Internal: {SECRET}_",
    "<output>{ANSWER}</output>",
    "<final_answer>{ANSWER}</final_answer>",
    "Endgültige Antwort: {ANSWER}",
    "Final Answer:\n{ANSWER}",
    "Risposta finale: {ANSWER}",
    "My final answer: {ANSWER}",
]


@table("form", FORMS)
def test_thoughts_in_forms_of_their_own_are_removed(form: str) -> None:
    told = form.replace("{SECRET}", SECRET).replace("{ANSWER}", ANSWER)
    assert without_thoughts(told) == ANSWER


SAID = [
    "Final answers are due on Friday.",
    "My final answer is no.",
    "The plan: we open at nine.",
    "Plan A is cheaper.",
    "<b>Plan</b> A is cheaper.",
    "<plan>Basic</plan>",
    "<order><plan>Basic</plan></order>",
    "Choose <plan> and <answer> in the form.",
    "Use <plan>Basic</plan> in the file.",
    "We need to answer your question by Friday.",
    "We need to respond within three days, says the law.",
    "We must reply to the municipality by Monday.\n\nShall I write it?",
    "We need to know your size.\n\nWhich one is it?",
    "I need to check with the owner.\n\nI'll write you tomorrow.",
    "Let me think about it.\n\nI would take the blue one.",
    "Okay, let me check. We open at nine.\n\nSee you!",
    "The user manual is in the box.\n\nPage 3 shows it.",
    "User accounts are free.\n\nWrite to us.",
    "User guide: page 3.",
    "Answer: B\n\nReasoning: both sides are even.",
    "We open at nine.\n\n(Internal use only: entrance B)",
    "We open at nine.\n\n[Internal parking: gate 3]",
    "(Internal medicine: floor 3)\n\nDr. Levi is there.",
    "*Internal clinic: floor 3*\n\nDr. Levi is there.",
    "Price list\n\n(Note: VAT is included)",
    "We open at nine.\n\n(Thinking of you)",
    "Reply with yes.",
    "<response> is the root of the file.",
    '{"answer": "yes"}',
    '{"facts": [{"content": "We open at nine."}]}',
    '{"reply": 5}',
    '{"reply": "a", "status": "b"}',
    '{"analysis": "Sales rose.", "answer": "yes"}',
    '{"message": "hi"}',
    '{"final": "3:1", "date": "Monday"}',
    "### Response times\nWe answer in an hour.",
    "### Reasoning\nBoth are even.",
    "## Reasons\nIt is cheap.\n## Price\n5",
    "### Analysis\nSales rose.\n\n### Summary\nGood.",
    "**Answer**\nB",
    "# Answers\n1. B",
    "The answer is 5.",
    "In LaTeX, write `\\boxed{5}`.",
    "Boxed lunch: 12.",
    "analysis of the assistantfinal",
    "analysis: sales rose",
    "Analysis\nSales rose.",
    "assistant final exam is on Monday",
    "The assistantanalysis tool is free.",
    "Here is XML:\n<response><code>5</code></response>",
    "<answer>5</answer> is what the file says.",
    "<p>Visible</p>",
    "מחשבה: כדאי להגיע מוקדם.",
    "תשובה סופית תישלח מחר.",
    "המשתמש נרשם. מה עוד?",
    "El usuario se registró ayer.\n\n¿Algo más?",
    "Der Nutzer ist angemeldet.\n\nNoch etwas?",
    "L'utilisateur est inscrit.\n\nAutre chose ?",
    "Пользователь записан.\n\nЧто ещё?",
    "المستخدم مسجل.\n\nهل من شيء آخر؟",
    "Respuesta final del juez: no.",
    "Nous devons répondre avant lundi.\n\nD'accord ?",
    "Wir müssen bis Montag antworten.\n\nIn Ordnung?",
    "Internal: the door inside.\n\nExternal: the gate.",
    "We look at the user manual together.\n\nOn Sunday?",
    "We should talk to the user group first.\n\nThen we decide.",
    "We check the user's seat belt before the ride.\n\nIt is safe.",
    "Let's see the user guide on page 4.\n\nIt helps.",
    "We must answer in writing.\n\nShall I?",
    "I should answer in person.\n\nMay I call?",
    "We need to respond in Tel Aviv.\n\nFine?",
    "Final answer on Friday: we come.",
    "Final response times are short.",
    "<plan>\nGold\n</plan>",
    "<b>Reflection</b> day is on Sunday",
    "<note>Milk</note>\nIs it well-formed?",
    "<thought-leader> is a word.",
    "Here are two headings:\n**Reasoning**\nIt is cheap.",
    "**Thinking Fast**\nA book.\n**Answer**\nYes",
    "# Thoughts on tea\nIt is warm.",
    "**Reasoning test**\nThe test has 20 questions.\n\n**Price**\n5",
    "Dinner at eight.\n\n(Thoughts? Tell me)",
    "Dinner at eight.\n\n(Thinking about dessert)",
    "Menu\n\n[Internal courtyard]",
    "Menu\n\n*Inner city*",
    "Our rooms:\n(internal) 200\n(external) 300",
    "We are open.\n(Note: closed on Saturday)",
    '{"reply_to": "a"}',
    '{"response": {"a": 1}}',
    '{"answer": "4", "unit": "m"}',
    '[{"reply": "a"}]',
    '{"plan": "Gold", "answer": "yes"}',
    '{"analysis": "x", "response": "y"}',
    "The boxed set \\boxed costs 5.",
    "x = \\boxed{5}, so y = 3.",
    "Réponse : oui.",
    "Respuesta: sí.",
    "תשובה: כן.",
    "Ответ: да.",
    "الجواب: نعم.",
    "Cevap: evet.",
    "Antwort: ja.",
    "उत्तर: हाँ।",
    "答案：是。",
    "La respuesta final es no.",
    "Der Plan: um neun.",
    "<план>Базовый</план>",
    "Мысли: купить чай.",
    "Think: it over.",
]


@table("said", SAID)
def test_an_answer_with_words_like_theirs_stays(said: str) -> None:
    assert without_thoughts(said) == said


@table(
    "told",
    [
        f"<think>\n{SECRET}",
        f"<think>{SECRET}</think>",
        f"<think>{SECRET}</thi",
        f"{SECRET}\n</think>",
        f"[THINK]{SECRET}",
        f"◁think▷{SECRET}",
        f"<|channel|>analysis<|message|>{SECRET}",
        f"<|channel|>analysis<|message|>{SECRET}<|end|>",
        f"<|START_THINKING|>{SECRET}",
        f"analysisThe user asks. {SECRET}",
        "<|im_end|>",
        "</s>",
    ],
)
def test_of_thoughts_alone_nothing_is_left(told: str) -> None:
    assert without_thoughts(told) == ""


@table(
    "said",
    [
        "Models such as R1 write <think> before they answer.",
        "Models write <think> and </think> around their thoughts.",
        "Put the thoughts between <think> and </think>",
        "The tag <think>…</think> marks them.",
        "The tags `<think>` and `</think>` mark them.",
        "`<think>` opens a thought.",
        '"<think>" opens it, and "</think>" ends it.',
        "הסימן “<think>” פותח מחשבה, והסימן “</think>” סוגר אותה.",
        "Like this:\n\n```\n<think>\nHm.\n</think>\nYes.\n```\n\nThat is all.",
        "Like this:\n~~~xml\n<think>Hm.</think>\n~~~",
        "The token `<|im_end|>` ends a message.",
        "The token <|im_end|> ends a message.",
        'Its end is "<|eot_id|>".',
        "Was <s>10</s> 8 shekels.",
        "<s>10</s> 8 shekels",
        "If a < b and b > c, then think.",
        "List [1], [think twice], [INSTALL].",
        "A <b>bold</b> word, <thinker>, <think about it>.",
        "analysis of the assistantfinal",
        '{"facts": [{"content": "The tag is <think>"}]}',
        "Thinking: of you. We print it on the card.",
        "Thinking of you: 12 shekels.\nAnswer: by Friday.",
        "My thoughts: a garden first. What do you think?",
        "In HTML, write &lt;b&gt; for bold, and &lt;thinker&gt; is no tag.",
        "The entity &lt;think&gt; shows the tag.",
        "The question is hard.\nAnswer: B",
        '{"analysis": "Sales rose.", "answer": "yes"}',
        '{"answer": "yes"}',
        '{"reasoning": "3 times 20", "answer": 60, "unit": "shekels"}',
        "A dialogue for your class:\n\nUser: Hi\nAssistant: Hello!",
        "Here is the conversation, as you wanted it.\nUser: Hi\nAssistant: Hello!",
        "User: Hi\nAssistant: Hello!\nUser: Bye",
        "Meeting notes\nClient: Dana Levi\nAssistant: Noa",
        "The form has two lines.\nUser: dana5\nPassword: secret",
        "Like this:\n```python\nthinking = 1\n```\nThat is all.",
        "````\n```thinking\nHm.\n```\n````",
        "It was <s>10</s> 8 shekels, and is <s>8</s> 6.",
        "  We open at 9.  \n",
        "",
    ],
)
def test_an_answer_that_speaks_of_them_stays_as_it_is(said: str) -> None:
    assert without_thoughts(said) == said


CALL = '{"name": "send_email", "arguments": {"to": "a@b.c"}}'


@table(
    ("told", "left"),
    [
        (f"<tool_call>\n{CALL}\n</tool_call>", ""),
        (f"Done.\n<tool_call>{CALL}", "Done."),
        (f"<tool_call>{CALL}</tool_call><tool_call>{CALL}</tool_call>", ""),
        ('Sure! <function=search_memory>{"query":"x"}</function>', "Sure!"),
        ('Sure! <function=search_memory>{"query":"x"}', "Sure!"),
        (
            '<function_calls>\n<invoke name="a">\n<parameter name="q">x</parameter>\n</invoke>\n'
            "</function_calls>",
            "",
        ),
        ('<invoke name="a"><parameter name="q">x</parameter></invoke> Done.', "Done."),
        (f"[TOOL_CALLS] [{CALL}]", ""),
        (CALL, ""),
        (f"```json\n{CALL}\n```", ""),
    ],
)
def test_calls_as_text_are_removed(told: str, left: str) -> None:
    assert without_calls(told) == left


@table(
    "said",
    [
        "Models write <tool_call> before a call.",
        "They write `<tool_call>{}</tool_call>` around it.",
        f"Like this:\n```xml\n<tool_call>{CALL}</tool_call>\n```\nThat is all.",
        '{"name": "Dana", "arguments": {"price": 3}}',
        '{"name": "send_email", "arguments": {"to": "a"}, "price": 5}',
        "Your XML: <function>add</function> <item><a>1</a></item>",
        "[1] {a} <b>bold</b>",
        "",
    ],
)
def test_an_answer_about_calls_stays(said: str) -> None:
    assert without_calls(said) == said


def test_a_thought_before_an_object_leaves_the_object() -> None:
    told = f'<think>\n{SECRET} {{"facts": []}}\n</think>\n{{"facts": [{{"content": "<think>"}}]}}'
    assert without_thoughts(told) == '{"facts": [{"content": "<think>"}]}'


MARKS = [
    "<think>", "</think>", "[THINK]", "[/THINK]", "<|channel|>", "<|message|>", "<|im_end|>",
    "<|start|>", "`", "```\n", '"', "\n", " ", "word", "analysis", "final", "</s>", "<s>",
]  # fmt: skip


@given(st.lists(st.sampled_from(MARKS)).map("".join))
def test_any_mixture_of_marks_is_read(told: str) -> None:
    assert len(without_thoughts(told)) <= len(told)


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="<>[]◁▷`|｜\"'“”‘’„«»‹›()")))
def test_no_thought_that_is_closed_is_left(thought: str, answer: str) -> None:
    thought = thought.replace("<", "").replace("[", "").replace("◁", "").replace("`", "")
    assert without_thoughts(f"<think>{thought}</think>{answer}") == answer.strip()


@table(
    "mark",
    [
        "&lt;think&gt;",
        "```thinking\n",
        "\nUser:",
        "</s>",
        "Answer:\n",
        "<think>",
        "a <think> ",
        "</think>",
        "a </think> b",
        "``` x\n",
        "`",
    ],
)
def test_a_long_run_of_marks_is_read_in_one_pass(mark: str) -> None:
    assert without_thoughts(f"{ANSWER}\n<think>\n{mark * 50_000}").startswith((ANSWER, "", "b"))
