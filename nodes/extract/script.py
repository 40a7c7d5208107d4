"""Traditional characters read as simplified ones, so that every rule is written once for both."""

from __future__ import annotations

__all__ = ["as_written", "simplified"]

_PAIRS = (
    "業业兩两嚴严個个臨临為为爲为麼么義义習习鄉乡買买於于產产親亲僅仅從从倉仓們们價价會会傳传債债傾倾養养寫写決决準准幾几別别創创剛刚"
    "劑剂辦办務务動动區区醫医華华佔占壓压廚厨發发臺台號号後后嗎吗聽听員员週周詢询問问團团國国處处備备復复複复媽妈學学實实審审對对導导將将"
    "嘗尝師师幫帮庫库應应開开棄弃當当錄录憶忆懷怀總总慣惯戶户擇择護护報报換换據据掛挂攝摄數数無无時时暫暂條条來来構构術术權权機机檔档夢梦"
    "檢检標标樣样歡欢殘残氣气漢汉沒没淺浅測测潤润溫温點点煩烦熱热愛爱貓猫現现癥症盡尽著着碼码確确禮礼離离種种稱称簡简類类糾纠約约純纯線线"
    "組组細细終终經经結结繞绕給给統统續续維维編编網网職职勝胜腳脚騰腾範范藥药慮虑裝装補补規规視视覺觉計计認认討讨讓让記记許许論论設设訪访"
    "證证訴诉診诊詞词譯译試试話话詳详語语說说説说請请誰谁謝谢負负責责賬账帳账購购貸贷資资輕轻載载較较達达遷迁過过運运還还這这進进遠远遲迟"
    "選选郵邮採采裡里裏里釋释鐘钟鑰钥銀银銷销錯错長长門门隊队隨随頁页項项順顺須须顧顾領领題题額额飛飞驗验體体兒儿僱雇繫系係系關关訊讯議议"
    "評评該该質质頭头觀观館馆場场廣广惡恶斷断歲岁殺杀滿满獨独異异盤盘筆笔節节紀纪綠绿電电車车書书畫画東东單单變变優优億亿鬆松轉转讀读雙双"
    "貨货費费賣卖賴赖趕赶輸输農农連连適适邊边鄰邻醜丑鏈链鍵键鎖锁閉闭間间閱阅陣阵陰阴陽阳階阶際际難难雲云靜静響响頻频顏颜願愿風风飯饭飲饮"
    "餐餐養养馬马驚惊魚鱼鳥鸟麗丽龍龙龜龟齊齐齒齿劃划勞劳勵励區区協协參参啟启喚唤圍围圖图執执塊块壞坏夠够奪夺婦妇孫孙寧宁寶宝專专尋寻屆届"
    "層层屬属島岛幣币庫库彈弹徑径徵征恆恒悶闷態态憑凭懶懒戀恋戰战擊击擔担擬拟擴扩擺摆敗败敵敌曆历檯台櫃柜欄栏歷历歸归毀毁決决減减溝沟滅灭"
    "濾滤災灾烏乌煙烟燈灯燒烧爭争爺爷牆墙狀状獎奖獲获環环瑪玛療疗礙碍禍祸禪禅稅税積积穩稳窮穷競竞籌筹糧粮紅红級级納纳紙纸細细紹绍絕绝絡络"
    "練练緊紧緒绪緩缓縣县縮缩績绩織织繪绘罰罚羅罗聖圣聯联聲声膽胆臉脸舊旧艱艰藝艺蘇苏蘭兰處处虛虚虧亏蟲虫術术衛卫衝冲製制複复誤误誠诚誕诞"
    "調调諒谅談谈謊谎講讲識识讚赞豬猪貝贝財财貢贡貧贫販贩貴贵賞赏賽赛贈赠躍跃軍军軟软軸轴較较輛辆輯辑遊游遞递遺遗邁迈鄭郑釣钓鈔钞鉛铅銅铜"
    "鋼钢錢钱鍋锅鏡镜鐵铁閃闪閒闲陳陈陸陆隱隐雜杂雞鸡霧雾韓韩頂顶預预顯显飄飘餅饼餓饿餘余駕驾騎骑騙骗鬥斗鬧闹鮮鲜鹽盐麥麦麵面黃黄齡龄"
)
"""Each traditional character, followed by its simplified one: those that rules and everyday words need."""

_SIMPLE = str.maketrans(dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True)))


def simplified(text: str) -> str:
    """The text in simplified characters, each in its old place: the length stays."""
    return text.replace("回覆", "回复").replace("答覆", "答复").translate(_SIMPLE)


def as_written(text: str, said: str) -> str:
    """`text`, made from words of `said` in simplified characters, in the characters that `said` is written in."""
    back = {ord(simple): written for written, simple in zip(said, simplified(said), strict=True) if written != simple}
    return text.translate(back)
